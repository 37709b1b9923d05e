"""What training generators across clients costs, beside the formulas of FedDEP's Table 1."""

READ["overhead"] = ("pretrain", "prototypes", "generator")

for study in studies_of("overhead"):

    rule:
        name: study
        message: "Write {output[0]}"
        input: measured(study)
        output: multiext(f"{OUTPUT}/{study}/", "table.csv", "page.md")
        log: f"{CACHE}/logs/{study}.log"
        resources:
            mem_mb=config["memory"]["tables"],
        script: "../scripts/page.py"
