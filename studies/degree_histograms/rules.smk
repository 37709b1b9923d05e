"""How many nodes have which degree, with differential privacy for edges."""

READ["degree_histograms"] = ()

for study in studies_of("degree_histograms"):

    rule:
        name: study
        message: "Write {output[0]}"
        input: measured(study)
        output: multiext(f"{OUTPUT}/{study}/", "table.csv", "page.md", "figure.svg", "figure.png")
        log: f"{CACHE}/logs/{study}.log"
        resources:
            mem_mb=config["memory"]["tables"],
        script: "../scripts/page.py"
