"""What the stages before classification share. Their files are named by what they depend on, so that runs can share them."""

PREPARING = ("pretrain", "prototypes", "generator")
PREPARATIONS = {}


def prepare_for(run):
    """The steps of a run, noted by their files."""
    prepared = preparations.preparations(config, run)
    PREPARATIONS.update((str(each.file), each) for each in prepared)
    return prepared


for run in plan.all_runs(config):
    if source(RUNS[run.path]) == RUNS[run.path].result:
        prepare_for(run)


def prepared_files(stage):
    """The input function of a stage: data, and the results of the stages before it."""

    def files(wildcards):
        needs = prepared_of(stage, wildcards).needs
        return {**problem_files(wildcards), **{name: f"{OUTPUT}/{file}" for name, file in needs.items()}}

    return files


def prepared_flags(stage):
    """The flags of a stage: one of the runs that need its result, data, and the results of the stages before it."""

    def flags(wildcards, input):
        prepared = prepared_of(stage, wildcards)
        return problem_flags(prepared.run, input, {name: input[name] for name in prepared.needs})

    return flags


def prepared_key(stage):
    return lambda wildcards: preparations.key(config, prepared_of(stage, wildcards))


def prepared_of(stage, wildcards):
    name = f"{stage}/{wildcards.setting}/{wildcards.dataset}/{wildcards.scope}/{wildcards.step}/seed{wildcards.seed}.safetensors"
    return PREPARATIONS[name]
