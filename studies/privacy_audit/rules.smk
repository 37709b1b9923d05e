"""Attacks on what leaves clients: edges, properties, features, and lower bounds on ε."""

READ["privacy_audit"] = ()

for study in studies_of("privacy_audit"):

    rule:
        name: study
        message: "Write {output[0]}"
        input: measured(study)
        output: multiext(f"{OUTPUT}/{study}/", "table.csv", "page.md", "figure.svg", "figure.png", "canaries.csv", "properties.csv", "reconstruction.csv")
        log: f"{CACHE}/logs/{study}.log"
        resources:
            mem_mb=config["memory"]["tables"],
        script: "../scripts/page.py"
