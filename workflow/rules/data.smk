"""Raw files, graphs, splits and partitions.  A file is named by the key of what it holds."""


localrules:
    download, # a cluster's nodes seldom reach the network


rule download:
    """Raw files of a public dataset, from the first source that has them, by their checksums."""
    message: "Download {wildcards.dataset}"
    output: f"{CACHE}/raw/{{dataset}}/MANIFEST.json"
    log: f"{CACHE}/logs/download/{{dataset}}.log"
    script: "../scripts/download.py"


def is_public(dataset):
    """Whether a graph is downloaded; one of one's own is read from its files, or made."""
    return not any(source in config["datasets"][dataset] for source in SOURCES)


def raw_files(wildcards):
    """The raw files of a public dataset.

    A graph of one's own is known by its key, so that its age and place do not matter.
    """
    return f"{CACHE}/raw/{wildcards.dataset}/MANIFEST.json" if is_public(wildcards.dataset) else []


rule prepare:
    """A dataset's graph, checked against the fingerprint in the registry, and its statistics."""
    message: "Prepare {wildcards.dataset}"
    input: raw_files
    output: multiext(f"{CACHE}/graphs/{{dataset}}-{{key}}", ".safetensors", ".json")
    log: f"{CACHE}/logs/prepare/{{dataset}}-{{key}}.log"
    benchmark: f"{CACHE}/benchmarks/prepare/{{dataset}}-{{key}}.tsv"
    resources:
        mem_mb=config["memory"]["data"],
    script: "../scripts/prepare.py"


rule split:
    """Which nodes train, validate and test; the same for every method and number of clients."""
    message: "Split the nodes of {wildcards.dataset}, seed {params.run.seed}"
    input:
        graph=lambda wildcards: task_files(SPLITS[wildcards.key])["graph"],
    output: f"{CACHE}/splits/{{dataset}}-{{key}}.safetensors"
    log: f"{CACHE}/logs/split/{{dataset}}-{{key}}.log"
    benchmark: f"{CACHE}/benchmarks/split/{{dataset}}-{{key}}.tsv"
    params:
        run=lambda wildcards: SPLITS[wildcards.key],
    resources:
        mem_mb=config["memory"]["data"],
    script: "../scripts/split.py"


rule partition:
    """Which client owns each node, and what that division loses."""
    message: "Divide {wildcards.dataset} among {params.run.clients} clients, seed {params.run.seed}"
    input:
        graph=lambda wildcards: task_files(PARTITIONS[wildcards.key])["graph"],
    output: multiext(f"{CACHE}/partitions/{{dataset}}-{{key}}", ".safetensors", ".json")
    log: f"{CACHE}/logs/partition/{{dataset}}-{{key}}.log"
    benchmark: f"{CACHE}/benchmarks/partition/{{dataset}}-{{key}}.tsv"
    params:
        run=lambda wildcards: PARTITIONS[wildcards.key],
    resources:
        mem_mb=config["memory"]["data"],
    script: "../scripts/partition.py"
