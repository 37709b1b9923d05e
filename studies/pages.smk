"""The page of each study that measures runs, by a rule of the study's name."""

for study, options in config["studies"].items():
    if options["kind"] in MEASURED:

        rule:
            name: study
            message: "Write {output[0]}"
            input: measured(study)
            output: multiext(f"{OUTPUT}/{study}/", *MEASURED[options["kind"]]["files"])
            log: f"{CACHE}/logs/{study}.log"
            resources:
                mem_mb=config["memory"]["tables"],
            script: "scripts/page.py"
