"""Labels that clients hold, and that trained models predict."""

READ["label_distributions"] = ("model",)

for study in studies_of("label_distributions"):

    rule:
        name: study
        message: "Write {output[0]}"
        input: measured(study)
        output: multiext(f"{OUTPUT}/{study}/", "table.csv", "page.md", "figure.svg", "figure.png")
        log: f"{CACHE}/logs/{study}.log"
        resources:
            mem_mb=config["memory"]["tables"],
        script: "../scripts/page.py"
