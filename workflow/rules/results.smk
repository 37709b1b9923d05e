"""Tables, figures and pages, from runs that are in a table or were trained here: a folder of results each."""

from feddep.config.loading import main_tables

MAIN = f"{OUTPUT}/main"
TABLES = ["accuracy", "comparisons", "effects", "ranks", "costs", "partitions"]
# Those without code of their own.
STUDIES = [name for name, study in config["studies"].items() if not plan.has_code(study["kind"])]
FIGURES = ["partitions", *(f"{kind}_{name}" for name in main_tables(config) for kind in ("accuracy", "curves", "ranks"))]


rule main_tables:
    """Every number beside the published one: accuracy, comparisons, effect sizes, average ranks, costs, partitions."""
    message: "Write the main tables"
    input:
        lambda wildcards: results_of(plan.runs(config)),
        lambda wildcards: statistics_files(),
    output:
        report(f"{MAIN}/page.md", caption="../report/main.rst", category="Main tables"),
        report(expand(f"{MAIN}/{{table}}.csv", table=TABLES), caption="../report/main.rst", category="Main tables"),
        report(expand(f"{MAIN}/{{figure}}.svg", figure=FIGURES), caption="../report/main.rst", category="Main tables"),
        expand(f"{MAIN}/{{figure}}.png", figure=FIGURES),
    log: f"{CACHE}/logs/main.log"
    params:
        key=lambda wildcards: keys_of(plan.runs(config)),
        facts={**facts_of("graphs"), **facts_of("partitions")},
    resources:
        mem_mb=config["memory"]["tables"],
    script: "../scripts/main_tables.py"


rule study:
    """The tables, page and figure of a study; what its kind has beside table.csv is written with it."""
    message: "Write the study {wildcards.study}"
    input: lambda wildcards: results_of(plan.study_runs(config, wildcards.study))
    output:
        report(f"{OUTPUT}/{{study}}/page.md", caption="../report/study.rst", category="Studies", subcategory="{study}"),
        report(f"{OUTPUT}/{{study}}/figure.svg", caption="../report/study.rst", category="Studies", subcategory="{study}"),
        multiext(f"{OUTPUT}/{{study}}/", "table.csv", "figure.png"),
    log: f"{CACHE}/logs/studies/{{study}}.log"
    wildcard_constraints:
        study="|".join(STUDIES) or "none",
    params:
        key=lambda wildcards: keys_of(plan.study_runs(config, wildcards.study)),
        options=lambda wildcards: config["studies"][wildcards.study],
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


# Both ask for the results of runs beside the pages: Snakemake makes no input of a file that is there, as pages are in a clone.
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
