"""Labels that prototypes tell of a client's nodes, and what classifiers make of generated neighbours."""

READ["label_shortcut"] = ("pretrain", "prototypes", "generator", "model")

for study in studies_of("label_shortcut"):

    rule:
        name: study
        message: "Write {output[0]}"
        input: measured(study)
        output: multiext(f"{OUTPUT}/{study}/", "table.csv", "page.md")
        log: f"{CACHE}/logs/{study}.log"
        resources:
            mem_mb=config["memory"]["tables"],
        script: "../scripts/page.py"
