"""Neighbourhoods that NeighGen mends beside the true ones."""

READ["neighbourhoods"] = ("generator",)

for study in studies_of("neighbourhoods"):

    rule:
        name: study
        message: "Write {output[0]}"
        input: measured(study)
        output: multiext(f"{OUTPUT}/{study}/", "table.csv", "page.md", "figure.svg", "figure.png", "missing_neighbours.csv")
        log: f"{CACHE}/logs/{study}.log"
        resources:
            mem_mb=config["memory"]["tables"],
        script: "../scripts/page.py"
