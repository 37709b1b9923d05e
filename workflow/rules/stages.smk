"""A stage by its name: ``snakemake pretrain`` makes it alone, and ``-R pretrain`` makes it anew."""

from snakemake.cli import parse_args

# The rules of each stage.
STAGES = {
    **{stage: [stage] for stage in ("download", "prepare", "split", "partition", *STEP_STAGES)},
    "train": ["train", "batch"],
}


def planned_stages():
    """The stages that the DAG has jobs of, where no study measures runs."""
    graphs = {run.dataset.name for run in MISSING.values()}
    facts = {kind: missing_facts(kind) for kind in ("graphs", "partitions")}
    if any(facts.values()):
        graphs.update(plan.graphs(config))
    jobs = {
        "download": any(map(is_public, graphs)),
        "prepare": graphs,
        "split": SPLITS,
        "partition": facts["partitions"] or any(run.clients is not None for run in MISSING.values()),
        "train": MISSING,
    }
    stages = {job.step.stage for job in STEPS.values()}
    return stages.union(stage for stage, some in jobs.items() if some)


def place_of_target(target, words):
    """The index of a target among Snakemake's arguments, where an option may take the same word."""
    targets = parse_args(words)[1].targets
    return next(
        place
        for place, word in enumerate(words)
        if word == target and parse_args(words[:place] + words[place + 1 :])[1].targets != targets
    )


def choose_stage():
    """Make a stage that is a target alone; end where no run has a stage that is asked for.

    Snakemake takes no rule with wildcards as a target, but makes all until such a rule.
    """
    words = sys.argv[1:]
    _, asked = parse_args(words)
    targets = [target for target in asked.targets if target in STAGES]
    if len(targets) > 1:
        sys.exit(
            f"feddep: the targets {', '.join(targets)} are stages; allowed is one, which is made "
            "with the stages before it"
        )
    absent = {*targets, *STAGES.keys() & set(asked.forcerun)} - planned_stages()
    # A study that measures runs has the stages that it reads made, recorded or not.
    named = [Path(word).parts for word in (*asked.targets, *asked.forcerun)]
    if absent and not OWN_CODE.keys() & {part for parts in named for part in parts}:
        switch = "; --config 'records={use: false}' trains recorded runs anew"
        sys.exit(
            f"feddep: no run that is to be trained has the stage {', '.join(sorted(absent))}"
            + (switch if config["records"]["use"] else "")
        )
    if targets:
        words.pop(place_of_target(targets[0], words))
        end = words.index("--") if "--" in words else len(words)
        words[end:end] = ["--until", *STAGES[targets[0]]]
        os.execv(sys.executable, [sys.executable, "-m", "snakemake", *words])


if workflow.is_main_process:
    choose_stage()
    if MISSING:
        seconds, unknown = runs.estimate(config, MISSING.values())
        about = f"about {seconds / 3600:.2f} core-hours by recorded runs like them"
        about += f", {unknown} without any" if unknown else ""
        print(f"feddep: {len(MISSING)} runs are in no table of runs: {about}", file=sys.stderr)
