"""Tables, figures, studies and the report, from finished runs or their records."""


rule tables:
    """Every number beside the published one: accuracy, comparisons, effect sizes, average ranks, costs, partitions, provenance."""
    message: "Write the tables"
    input: findings
    output:
        report(f"{OUTPUT}/tables/accuracy.md", caption="../report/accuracy.rst", category="Tables"),
        report(f"{OUTPUT}/tables/accuracy.csv", caption="../report/accuracy.rst", category="Tables"),
        f"{OUTPUT}/tables/accuracy.tex",
        report(f"{OUTPUT}/tables/comparisons.csv", caption="../report/comparisons.rst", category="Tables"),
        report(f"{OUTPUT}/tables/effects.csv", caption="../report/effects.rst", category="Tables"),
        f"{OUTPUT}/tables/effects.md",
        report(f"{OUTPUT}/tables/ranks.csv", caption="../report/ranks.rst", category="Tables"),
        f"{OUTPUT}/tables/ranks.md",
        report(f"{OUTPUT}/tables/costs.csv", caption="../report/costs.rst", category="Tables"),
        f"{OUTPUT}/tables/costs.md",
        report(f"{OUTPUT}/tables/partitions.csv", caption="../report/partitions.rst", category="Tables"),
        f"{OUTPUT}/tables/partitions.md",
        f"{OUTPUT}/tables/provenance.json",
        f"{OUTPUT}/tables/tables.sha256",
    log: f"{OUTPUT}/logs/tables.log"
    benchmark: f"{OUTPUT}/benchmarks/tables.tsv"
    params:
        key=page_keys.tables_key(config, "write_tables"),
        directory=subpath(output[0], parent=True),
    threads: 1
    resources:
        mem_mb=config["memory"]["tables"],
    shell: feddep("tables --output {params.directory:q}")


rule reproduction:
    """Every published number beside ours, and whether the two agree: of the main tables, and of the sweeps that papers have."""
    message: "Set published numbers beside ours"
    input: published_input
    output:
        report(f"{OUTPUT}/tables/reproduction.md", caption="../report/reproduction.rst", category="Tables"),
        report(f"{OUTPUT}/tables/reproduction.csv", caption="../report/reproduction.rst", category="Tables"),
        f"{OUTPUT}/tables/reproduction.sha256",
    log: f"{OUTPUT}/logs/reproduction.log"
    benchmark: f"{OUTPUT}/benchmarks/reproduction.tsv"
    params:
        key=lambda wildcards: page_keys.agreement_key(config),
        directory=subpath(output[0], parent=True),
    threads: 1
    resources:
        mem_mb=config["memory"]["tables"],
    shell: feddep("reproduction --output {params.directory:q}")


rule figures:
    """Accuracy beside the papers', training curves and average ranks of each setting, and partitions."""
    message: "Draw the figures"
    input: findings
    output:
        report(f"{OUTPUT}/figures/partitions.svg", caption="../report/partitions.rst", category="Figures"),
        report(expand(f"{OUTPUT}/figures/accuracy_{{name}}.svg", name=SETTINGS), caption="../report/accuracy.rst", category="Figures"),
        report(expand(f"{OUTPUT}/figures/curves_{{name}}.svg", name=SETTINGS), caption="../report/curves.rst", category="Figures"),
        expand(f"{OUTPUT}/figures/{{kind}}_{{name}}.png", kind=["accuracy", "curves"], name=SETTINGS),
        report(RANKS, caption="../report/ranks.rst", category="Figures"),
        [figure.replace(".svg", ".png") for figure in RANKS],
        f"{OUTPUT}/figures/partitions.png",
        f"{OUTPUT}/figures/figures.sha256",
    log: f"{OUTPUT}/logs/figures.log"
    benchmark: f"{OUTPUT}/benchmarks/figures.tsv"
    params:
        key=page_keys.tables_key(config, "write_figures"),
        directory=subpath(output[0], parent=True),
    threads: 1
    resources:
        mem_mb=config["memory"]["tables"],
    shell: feddep("figures --output {params.directory:q}")


rule report:
    """Tables, figures and studies on one page that needs no network."""
    message: "Write the report {output}"
    input:
        findings,
        studies=expand(f"{STUDY}/study.sha256", study=config["studies"]),
    output: multiext(f"{OUTPUT}/report/report", ".html", ".sha256")
    log: f"{OUTPUT}/logs/report.log"
    benchmark: f"{OUTPUT}/benchmarks/report.tsv"
    params:
        key=page_keys.tables_key(config, "write_report"),
        pages=page_flags("study", [f"{study}={OUTPUT}/studies/{study}" for study in config["studies"]], "report"),
    threads: 1
    resources:
        mem_mb=config["memory"]["tables"],
    shell: feddep("report {params.pages}")


rule study:
    """The table, page and figure of a study."""
    message: "Write the study {wildcards.study}"
    input: study_input
    output:
        report(f"{STUDY}/table.md", caption="../report/study.rst", category="Studies", subcategory="{study}"),
        report(f"{STUDY}/figure.svg", caption="../report/study.rst", category="Studies", subcategory="{study}"),
        f"{STUDY}/table.csv",
        f"{STUDY}/figure.png",
        f"{STUDY}/provenance.json",
        f"{STUDY}/study.sha256",
    log: f"{OUTPUT}/logs/studies/{{study}}.log"
    benchmark: f"{OUTPUT}/benchmarks/studies/{{study}}.tsv"
    wildcard_constraints:
        study="|".join(config["studies"]) or "none",
    params:
        key=lambda wildcards: page_keys.study_key(config, wildcards.study),
        directory=subpath(output[0], parent=True),
    threads: 1
    resources:
        mem_mb=config["memory"]["tables"],
    shell: feddep("study --study {wildcards.study:q} --output {params.directory:q}")


rule study_table:
    """A further table of a study, where its kind has any."""
    message: "Write the table {wildcards.table} of the study {wildcards.study}"
    input: study_input
    output: multiext(f"{STUDY}/{{table}}", ".csv", ".sha256")
    log: f"{OUTPUT}/logs/studies/{{study}}_{{table}}.log"
    benchmark: f"{OUTPUT}/benchmarks/studies/{{study}}_{{table}}.tsv"
    wildcard_constraints:
        study="|".join(config["studies"]) or "none",
        table="|".join(table for tables in studies.FURTHER_TABLES.values() for table in tables),
    params:
        key=lambda wildcards: page_keys.study_key(config, wildcards.study),
        directory=subpath(output[0], parent=True),
    threads: 1
    resources:
        mem_mb=config["memory"]["tables"],
    shell:
        feddep(
            "study --study {wildcards.study:q} --table {wildcards.table:q} --output {params.directory:q}"
        )


localrules:
    studies,


rule studies:
    """All studies."""
    message: "All studies are made: see {OUTPUT}/studies"
    input:
        expand(rules.study.output, study=config["studies"]),
        [
            f"{OUTPUT}/studies/{study}/{table}.csv"
            for study, options in config["studies"].items()
            for table in studies.FURTHER_TABLES.get(options["kind"], ())
        ],
