rule generator:
    """Each client's generator of missing neighbours, and its mended subgraph."""
    message: "Train generators on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed} ({wildcards.setting})"
    input: unpack(prepared_files("generator"))
    output:
        tensors=f"{OUTPUT}/generator/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.safetensors",
        facts=f"{OUTPUT}/generator/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.json",
    log: f"{OUTPUT}/logs/generator/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.log"
    benchmark: f"{OUTPUT}/benchmarks/generator/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.tsv"
    params:
        key=prepared_key("generator"),
        run=prepared_flags("generator"),
    threads: config["threads"]
    resources:
        mem_mb=6000,
        gpu=gpus(),
    shell: feddep(f"generator --config {CONFIG} {{params.run}} --output {{output.tensors}}")
