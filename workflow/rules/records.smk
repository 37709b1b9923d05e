"""Published records: a run whose record has the right key is not trained again, and needs no data."""


def recorded(artefacts):
    """The names of the artefacts that are published with the key that they must have."""
    return {name for name, artefact in artefacts.items() if config["records"]["use"] and artefact.matches}


def one_of(names):
    """A regular expression that matches these names and nothing else."""
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


# What is made afresh needs its partition and its graph afresh, and their statistics come with them.
RECORDED_RUNS = recorded(RUNS)
FRESH_RUNS = [run for run in plan.all_runs(config) if run.path not in RECORDED_RUNS]
RECORDED_CUTS = recorded(CUTS) - {cut.path for cut in plan.cuts_of(FRESH_RUNS)}
FRESH_CUTS = [cut for cut in plan.cuts(config) if cut.path not in RECORDED_CUTS]
RECORDED_GRAPHS = recorded(GRAPHS) - {variants.base(made.dataset) for made in FRESH_RUNS + FRESH_CUTS}


ruleorder: reuse_run > classify
ruleorder: reuse_partition > partition
ruleorder: reuse_graph > prepare


localrules: reuse_run, reuse_partition, reuse_graph, publish


rule reuse_run:
    """The metrics of a run from their published record."""
    message: "Reuse the published record of {wildcards.run}"
    input: lambda wildcards: ancient(RUNS[wildcards.run].record)
    output: f"{OUTPUT}/runs/{{run}}/metrics.json"
    log: f"{OUTPUT}/logs/reuse/runs/{{run}}.log"
    params: key=lambda wildcards: RUNS[wildcards.run].key
    wildcard_constraints: run=one_of(RECORDED_RUNS)
    shell: feddep("reuse --record {input} --key {params.key} --output {output}")


rule reuse_partition:
    """The statistics of a partition from their published record."""
    message: "Reuse the published statistics of the partition {wildcards.cut}"
    input: lambda wildcards: ancient(CUTS[wildcards.cut].record)
    output: f"{OUTPUT}/partitions/{{cut}}.json"
    log: f"{OUTPUT}/logs/reuse/partitions/{{cut}}.log"
    params: key=lambda wildcards: CUTS[wildcards.cut].key
    wildcard_constraints: cut=one_of(RECORDED_CUTS)
    shell: feddep("reuse --record {input} --key {params.key} --output {output}")


rule reuse_graph:
    """The statistics of a graph from their published record."""
    message: "Reuse the published statistics of {wildcards.graph}"
    input: lambda wildcards: ancient(GRAPHS[wildcards.graph].record)
    output: f"{OUTPUT}/graphs/{{graph}}.json"
    log: f"{OUTPUT}/logs/reuse/graphs/{{graph}}.log"
    params: key=lambda wildcards: GRAPHS[wildcards.graph].key
    wildcard_constraints: graph=one_of(RECORDED_GRAPHS)
    shell: feddep("reuse --record {input} --key {params.key} --output {output}")


rule publish:
    """Copy every result of the configuration to the records that git keeps."""
    message: "Publish the results in {config[records][directory]}"
    input: [artefact.result for artefact in (*RUNS.values(), *CUTS.values(), *GRAPHS.values())]
    log: f"{OUTPUT}/logs/publish.log"
    shell: feddep(f"publish --config {CONFIG}")
