"""What trained models tell of their nodes, and what party B is sent tells of edges, in vertical training."""

READ["vertical_attacks"] = ()

for study in studies_of("vertical_attacks"):

    rule:
        name: study
        message: "Write {output[0]}"
        input: measured(study)
        output: multiext(f"{OUTPUT}/{study}/", "table.csv", "page.md", "figure.svg", "figure.png")
        log: f"{CACHE}/logs/{study}.log"
        resources:
            mem_mb=config["memory"]["tables"],
        script: "../scripts/page.py"
