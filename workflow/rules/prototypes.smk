rule prototypes:
    """Each client's embeddings in clusters, and the prototypes, shared once."""
    message: "Find prototypes on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed} ({wildcards.setting})"
    input: unpack(prepared_files("prototypes"))
    output:
        tensors=f"{OUTPUT}/prototypes/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.safetensors",
        facts=f"{OUTPUT}/prototypes/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.json",
    log: f"{OUTPUT}/logs/prototypes/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.log"
    benchmark: f"{OUTPUT}/benchmarks/prototypes/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.tsv"
    params:
        key=prepared_key("prototypes"),
        run=prepared_flags("prototypes"),
    threads: config["threads"]
    resources:
        mem_mb=2000,
        gpu=gpus(),
    shell: feddep(f"prototypes --config {CONFIG} {{params.run}} --output {{output.tensors}}")
