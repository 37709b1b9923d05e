"""What neighbour sampling and DP-SGD guarantee every client, for the first seed. On demand, as it needs graphs, which no record holds."""

from feddep.provenance import code_fingerprint

PRIVACY_CUTS = [plan.Cut(dataset, clients, config["seeds"][0]) for dataset in config["datasets"] for clients in config["clients"]]


rule privacy:
    """The guarantees of all clients: of neighbour sampling, published and exact, and of DP-SGD."""
    message: "Work out what every client is guaranteed"
    input:
        [f"{OUTPUT}/graphs/{dataset}.safetensors" for dataset in config["datasets"]],
        [f"{OUTPUT}/splits/{dataset}/seed{config['seeds'][0]}.safetensors" for dataset in config["datasets"]],
        [f"{OUTPUT}/partitions/{cut.path}.safetensors" for cut in PRIVACY_CUTS],
    output: multiext(f"{OUTPUT}/tables/privacy", ".csv", ".md", ".json")
    log: f"{OUTPUT}/logs/privacy.log"
    benchmark: f"{OUTPUT}/benchmarks/privacy.tsv"
    params:
        key=lambda wildcards: plan.digest(
            {
                "partitions": {cut.path: plan.partition_key(config, cut) for cut in PRIVACY_CUTS},
                "splits": {cut.dataset: plan.split_key(config, cut.dataset, cut.seed) for cut in PRIVACY_CUTS},
                **{part: config[part] for part in ("datasets", "settings", "frameworks", "rows")},
                "code": code_fingerprint("feddep.stages.guarantees"),
            }
        ),
        directory=lambda wildcards, output: Path(output[0]).parent,
    threads: 1
    resources: mem_mb=2000
    shell: feddep(f"guarantees --config {CONFIG} --output {{params.directory}}")
