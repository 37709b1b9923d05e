rule pretrain:
    """Each client's own GNN, trained on its subgraph, and the embeddings of its nodes."""
    message: "Pretrain on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed} ({wildcards.setting})"
    input: unpack(prepared_files("pretrain"))
    output:
        tensors=f"{OUTPUT}/pretrain/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.safetensors",
        facts=f"{OUTPUT}/pretrain/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.json",
    log: f"{OUTPUT}/logs/pretrain/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.log"
    benchmark: f"{OUTPUT}/benchmarks/pretrain/{{setting}}/{{dataset}}/{{scope}}/{{step}}/seed{{seed}}.tsv"
    params:
        key=prepared_key("pretrain"),
        run=prepared_flags("pretrain"),
    threads: config["threads"]
    resources:
        mem_mb=4000,
        gpu=gpus(),
    shell: feddep(f"pretrain --config {CONFIG} {{params.run}} --output {{output.tensors}}")
