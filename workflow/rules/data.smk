"""Raw files, graphs, splits and partitions."""


localrules:
    download, # a cluster's nodes seldom reach the network


rule download:
    """Raw files of a public dataset, from the first source that has them, each verified by its checksum."""
    message: "Download {wildcards.dataset}"
    output: f"{OUTPUT}/raw/{{dataset}}/MANIFEST.json"
    log: f"{OUTPUT}/logs/download/{{dataset}}.log"
    benchmark: f"{OUTPUT}/benchmarks/download/{{dataset}}.tsv"
    params:
        key=exit_on_user_error()(lambda wildcards: keys.data_fingerprint(config, wildcards.dataset)),
        directory=subpath(output[0], parent=True),
    threads: 1
    resources:
        mem_mb=config["memory"]["data"],
    shell: feddep("download --dataset {wildcards.dataset:q} --output {params.directory:q}")


rule prepare:
    """A dataset's graph, checked against the fingerprint in the registry, and its statistics."""
    message: "Prepare {wildcards.dataset}"
    input: unpack(raw_files)
    output:
        graph=f"{OUTPUT}/graphs/{{dataset}}.safetensors",
        statistics=f"{OUTPUT}/graphs/{{dataset}}.json",
    log: f"{OUTPUT}/logs/prepare/{{dataset}}.log"
    benchmark: f"{OUTPUT}/benchmarks/prepare/{{dataset}}.tsv"
    params:
        key=lambda wildcards: keys.graph_key(config, wildcards.dataset),
        raw=lambda wildcards, input: f"--raw {shlex.quote(str(Path(input.raw).parent))}" if "raw" in input.keys() else "",
    threads: 1
    resources:
        mem_mb=config["memory"]["data"],
    shell:
        feddep(
            "prepare --dataset {wildcards.dataset:q} {params.raw} --key {params.key}"
            " --graph {output.graph:q} --statistics {output.statistics:q}"
        )


rule split:
    """Which nodes train, validate and test; the same for every method and number of clients."""
    message: "Split the nodes of {wildcards.dataset}, seed {wildcards.seed}"
    input:
        graph=f"{OUTPUT}/graphs/{{dataset}}.safetensors",
    output: f"{OUTPUT}/splits/{{dataset}}/seed{{seed}}.safetensors"
    log: f"{OUTPUT}/logs/split/{{dataset}}/seed{{seed}}.log"
    benchmark: f"{OUTPUT}/benchmarks/split/{{dataset}}/seed{{seed}}.tsv"
    params:
        key=exit_on_user_error()(lambda wildcards: keys.split_key(config, wildcards.dataset, int(wildcards.seed))),
    threads: 1
    resources:
        mem_mb=config["memory"]["data"],
    shell:
        feddep(
            "split --dataset {wildcards.dataset:q} --seed {wildcards.seed:q} --key {params.key}"
            " --graph {input.graph:q} --output {output:q}"
        )


rule partition:
    """Which client owns each node, and what that division loses."""
    message: "Divide {wildcards.dataset} among {wildcards.clients} clients, seed {wildcards.seed}"
    input:
        graph=lambda wildcards: f"{OUTPUT}/graphs/{variants.base(wildcards.dataset)}.safetensors",
    output:
        partition=f"{OUTPUT}/partitions/{{dataset}}/m{{clients}}/seed{{seed}}.safetensors",
        statistics=f"{OUTPUT}/partitions/{{dataset}}/m{{clients}}/seed{{seed}}.json",
    log: f"{OUTPUT}/logs/partition/{{dataset}}/m{{clients}}/seed{{seed}}.log"
    benchmark: f"{OUTPUT}/benchmarks/partition/{{dataset}}/m{{clients}}/seed{{seed}}.tsv"
    params:
        key=exit_on_user_error()(lambda wildcards: keys.partition_key(config, partition_spec(wildcards))),
    threads: 1
    resources:
        mem_mb=config["memory"]["data"],
    shell:
        feddep(
            "partition --dataset {wildcards.dataset:q} --clients {wildcards.clients:q}"
            " --seed {wildcards.seed:q} --key {params.key} --graph {input.graph:q} --output {output.partition:q}"
            " --statistics {output.statistics:q}"
        )
