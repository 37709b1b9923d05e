"""Tables, figures and pages: a folder each, from runs that are in a table or were trained here."""

from feddep.config.loading import main_tables

MAIN = f"{OUTPUT}/main"
TABLES = ["accuracy", "comparisons", "effects", "graphs", "costs", "partitions"]
# Those without code of their own.
STUDIES = [name for name, study in config["studies"].items() if not plan.has_code(study["kind"])]
FIGURES = ["partitions"]
for setting in main_tables(config):
    FIGURES += [f"{kind}_{setting}" for kind in ("accuracy", "curves")]
CAPTIONED = {"caption": "../report/main.rst", "category": "Main tables"}
CAPTIONED_STUDY = {
    "caption": "../report/study.rst",
    "category": "Studies",
    "subcategory": "{study}",
}


rule main_tables:
    """Every number beside the published one, and comparisons, costs and partitions."""
    message: "Write the main tables"
    input:
        lambda wildcards: results_of(plan.runs(config)),
        lambda wildcards: statistics_files(),
    output:
        report(f"{MAIN}/page.md", **CAPTIONED),
        report(expand(f"{MAIN}/{{table}}.csv", table=TABLES), **CAPTIONED),
        report(expand(f"{MAIN}/{{figure}}.svg", figure=FIGURES), **CAPTIONED),
    log: f"{CACHE}/logs/main.log"
    params:
        key=lambda wildcards: keys_of(plan.runs(config)),
        margin=config["margin"],
        facts={**facts_of("graphs"), **facts_of("partitions")},
    resources:
        mem_mb=config["memory"]["tables"],
    script: "../scripts/main_tables.py"


rule study:
    """The tables, page and figure of a study; further tables of its kind are written with them."""
    message: "Write the study {wildcards.study}"
    input: lambda wildcards: results_of(plan.study_runs(config, wildcards.study))
    output:
        report(f"{OUTPUT}/{{study}}/page.md", **CAPTIONED_STUDY),
        report(f"{OUTPUT}/{{study}}/figure.svg", **CAPTIONED_STUDY),
        f"{OUTPUT}/{{study}}/table.csv",
    log: f"{CACHE}/logs/studies/{{study}}.log"
    wildcard_constraints:
        study="|".join(STUDIES) or "none",
    params:
        key=lambda wildcards: keys_of(plan.study_runs(config, wildcards.study)),
        options=lambda wildcards: config["studies"][wildcards.study],
        margin=config["margin"],
    resources:
        mem_mb=config["memory"]["tables"],
    script: "../scripts/study.py"


rule page:
    """A page and its figures as one HTML file, such as results/main/page.html; not in git."""
    message: "Render {output}"
    input:
        page=f"{OUTPUT}/{{name}}/page.md",
    output: f"{OUTPUT}/{{name}}/page.html"
    log: f"{CACHE}/logs/pages/{{name}}.log"
    script: "../scripts/page.py"


localrules:
    main,
    studies,


# Both ask for the results of runs beside the pages: Snakemake makes no input of a file that is
# there, as pages are in a clone.
rule main:
    """The main tables."""
    message: "The main tables are made: see {MAIN}/page.md"
    input:
        rules.main_tables.output,
        lambda wildcards: results_of(plan.runs(config)),


rule studies:
    """All studies."""
    message: "All studies are made: see {OUTPUT}"
    input:
        expand(rules.study.output, study=STUDIES),
        results_of(run for study in STUDIES for run in plan.study_runs(config, study)),
