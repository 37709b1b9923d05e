"""FedDEP's Table 1, measured on one run of each framework that has a row there: on Cora with 5 clients, where there are such."""

from types import SimpleNamespace

from feddep import overhead
from feddep.provenance import code_fingerprint


def overhead_runs():
    """The runs: first setting and first seed; every variant of a framework would be a row of its own."""
    dataset = "cora" if "cora" in config["datasets"] else next(iter(config["datasets"]))
    clients = 5 if 5 in config["clients"] else config["clients"][0]
    setting = next(iter(config["settings"]))
    names = [scheme.framework for scheme in overhead.SCHEMES]
    return [plan.Run(setting, dataset, clients, framework, config["seeds"][0]) for framework in names]


def overhead_made():
    """The steps of each run, by the names under which the stage is told of them."""
    return {f"{run.framework}:{made.step.stage}": made for run in overhead_runs() for made in prepare_for(run)}


def overhead_input(wildcards):
    run = overhead_runs()[0]
    files = problem_files(SimpleNamespace(dataset=run.dataset, seed=run.seed, scope=run.scope))
    return {**files, **{name.replace(":", "_"): f"{OUTPUT}/{made.file}" for name, made in overhead_made().items()}}


def overhead_flags(wildcards, input):
    runs = overhead_runs()
    made = {name: input[name.replace(":", "_")] for name in overhead_made()}
    return " ".join([problem_flags(runs[0], input, made), *(f"--framework {run.framework}" for run in runs[1:])])


rule overhead:
    """What training generators across clients costs: the paper's formulas beside operations counted and bytes sent."""
    message: "Measure the overhead of training generators"
    input: unpack(overhead_input)
    output: multiext(f"{OUTPUT}/tables/overhead", ".csv", ".md")
    log: f"{OUTPUT}/logs/overhead.log"
    benchmark: f"{OUTPUT}/benchmarks/overhead.tsv"
    params:
        key=lambda wildcards: plan.digest(
            {
                "made": {name: preparations.key(config, made) for name, made in overhead_made().items()},
                "code": code_fingerprint("feddep.stages.overhead"),
            }
        ),
        run=overhead_flags,
        directory=lambda wildcards, output: Path(output[0]).parent,
    threads: config["threads"]
    resources:
        mem_mb=4000,
        gpu=gpus(),
    shell: feddep(f"overhead --config {CONFIG} {{params.run}} --output {{params.directory}}")
