"""What is measured beside accuracy.  On demand, as it needs what no record holds: `snakemake results/tables/NAME.md`."""


rule measure:
    """One measurement of one run."""
    message: "Measure {wildcards.kind} of {wildcards.method} on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed}"
    input: unpack(measure_input)
    output: f"{OUTPUT}/measurements/{{kind}}/{RUN}.json"
    log: f"{OUTPUT}/logs/measurements/{{kind}}/{RUN}.log"
    benchmark: f"{OUTPUT}/benchmarks/measurements/{{kind}}/{RUN}.tsv"
    wildcard_constraints:
        kind="|".join(MEASUREMENTS),
    params:
        key=lambda wildcards: keys.digest(
            {"run": keys.run_key(config, run_of(wildcards)), "code": code_fingerprint(f"feddep.measurements.{wildcards.kind}")}
        ),
        task=measure_flags,
    threads: config["threads"]
    resources:
        mem_mb=config["memory"]["training"],
        gpu=gpus(),
    shell: feddep("measure --measurement {wildcards.kind:q} {params.task} --output {output:q}")


rule quality:
    """Generators beside predictions that need no training."""
    message: "Write {output[0]}"
    input: measured("quality")[0]
    output: measured("quality")[1]
    log: f"{OUTPUT}/logs/quality.log"
    params:
        kind="quality",
        key=page_key("quality"),
        files=lambda wildcards, input: page_flags("input", input),
    threads: 1
    resources:
        mem_mb=config["memory"]["tables"],
    shell: feddep("measurement_table --measurement {params.kind} {params.files}")


use rule quality as label_shortcut with:
    input: measured("label_shortcut")[0]
    output: measured("label_shortcut")[1]
    log: f"{OUTPUT}/logs/label_shortcut.log"
    params:
        kind="label_shortcut",
        key=page_key("label_shortcut"),
        files=lambda wildcards, input: page_flags("input", input),


use rule quality as neighbourhoods with:
    input: measured("neighbourhoods")[0]
    output: measured("neighbourhoods")[1]
    log: f"{OUTPUT}/logs/neighbourhoods.log"
    params:
        kind="neighbourhoods",
        key=page_key("neighbourhoods"),
        files=lambda wildcards, input: page_flags("input", input),


use rule quality as label_distributions with:
    input: measured("label_distributions")[0]
    output: measured("label_distributions")[1]
    log: f"{OUTPUT}/logs/label_distributions.log"
    params:
        kind="label_distributions",
        key=page_key("label_distributions"),
        files=lambda wildcards, input: page_flags("input", input),


use rule quality as degree_histograms with:
    input: measured("degree_histograms")[0]
    output: measured("degree_histograms")[1]
    log: f"{OUTPUT}/logs/degree_histograms.log"
    params:
        kind="degree_histograms",
        key=page_key("degree_histograms"),
        files=lambda wildcards, input: page_flags("input", input),


use rule quality as vertical_attacks with:
    input: measured("vertical_attacks")[0]
    output: measured("vertical_attacks")[1]
    log: f"{OUTPUT}/logs/vertical_attacks.log"
    params:
        kind="vertical_attacks",
        key=page_key("vertical_attacks"),
        files=lambda wildcards, input: page_flags("input", input),


use rule quality as overhead with:
    input: measured("overhead")[0]
    output: measured("overhead")[1]
    log: f"{OUTPUT}/logs/overhead.log"
    params:
        kind="overhead",
        key=page_key("overhead"),
        files=lambda wildcards, input: page_flags("input", input),


rule privacy:
    """What neighbour sampling and DP-SGD guarantee every client of the main tables, for the first seed."""
    message: "Account for the privacy of every client"
    input: unpack(privacy_files)
    output: multiext(f"{OUTPUT}/tables/privacy", ".csv", ".md", ".json", ".sha256")
    log: f"{OUTPUT}/logs/privacy.log"
    benchmark: f"{OUTPUT}/benchmarks/privacy.tsv"
    params:
        key=lambda wildcards: keys.digest(
            {
                "partitions": {spec.path: keys.partition_key(config, spec) for spec in plan.partitions(config)},
                **{part: config[part] for part in ("datasets", "split", "settings", "methods", "tables")},
                "code": code_fingerprint("feddep.stages.privacy_table"),
            }
        ),
        files=privacy_flags,
        directory=subpath(output[0], parent=True),
    threads: 1
    resources:
        mem_mb=config["memory"]["data"],
    shell: feddep("guarantees {params.files} --output {params.directory:q}")


rule audit_part:
    """One part of the audit, with the parameters of one method."""
    message: "Attack what leaves clients: {wildcards.part}, {wildcards.method}"
    input: unpack(lambda wildcards: task_files(audit_run(wildcards.method)))
    output:
        csv=f"{OUTPUT}/audit/{{part}}/{{method}}.csv",
        json=f"{OUTPUT}/audit/{{part}}/{{method}}.json",
        checksums=f"{OUTPUT}/audit/{{part}}/{{method}}.sha256",
    log: f"{OUTPUT}/logs/audit/{{part}}/{{method}}.log"
    benchmark: f"{OUTPUT}/benchmarks/audit/{{part}}/{{method}}.tsv"
    wildcard_constraints:
        part="|".join(AUDITED),
    params:
        key=audit_key,
        task=lambda wildcards, input: task_flags(audit_run(wildcards.method), input),
    threads: config["threads"]
    resources:
        mem_mb=config["memory"]["training"],
        gpu=gpus(),
    shell: feddep("audit --part {wildcards.part:q} {params.task} --output {output.csv:q}")


rule audit:
    """One table, guarantee above and attack below, and what prototypes tell of features as a figure."""
    message: "Put the audit together"
    input:
        unpack(lambda wildcards: task_files(audit_run("feddep"))),
        findings=[f"{OUTPUT}/audit/{part}/{method}.csv" for part, names in AUDITED.items() for method in names],
    output:
        multiext(f"{OUTPUT}/tables/audit", ".md", ".csv", ".json", ".sha256"),
        [f"{OUTPUT}/tables/audit_{part}.csv" for part in AUDITED if part != "membership"],
        multiext(f"{OUTPUT}/figures/reconstruction", ".svg", ".png"),
    log: f"{OUTPUT}/logs/audit/report.log"
    params:
        key=audit_key,
        task=lambda wildcards, input: task_flags(audit_run("feddep"), input),
        findings=lambda wildcards, input: page_flags("findings", input.findings),
    threads: 1
    resources:
        mem_mb=config["memory"]["tables"],
    shell: feddep("audit --part report {params.task} {params.findings}")
