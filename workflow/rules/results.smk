"""Tables, figures and pages: a folder each, from runs that are in a table or were trained here."""

from feddep.config.loading import main_tables

MAIN = f"{OUTPUT}/main"
TABLES = ["accuracy", "comparisons", "effects", "graphs", "costs", "partitions"]
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


SEARCHES = [name for name in STUDIES if config["studies"][name]["search"]]


localrules:
    trials,


checkpoint trials:
    """The trials of a search on its first seed: they say which are run on further seeds."""
    message: "The trials of {wildcards.study} are trained"
    input: lambda wildcards: results_of_study(wildcards.study, 1)
    output: touch(f"{CACHE}/searches/{{study}}-{{key}}")
    wildcard_constraints:
        study="|".join(SEARCHES) or "none",


checkpoint choices:
    """What a search chose, by its trials on all of its seeds."""
    message: "Choose the hyperparameters of {wildcards.study}"
    input: lambda wildcards: results_of_study(wildcards.study, 2)
    output:
        report(f"{OUTPUT}/{{study}}/choices.csv", **CAPTIONED_STUDY),
    log: f"{CACHE}/logs/searches/{{study}}.log"
    wildcard_constraints:
        study="|".join(SEARCHES) or "none",
    params:
        key=lambda wildcards: keys_of(searched(wildcards.study)),
    resources:
        mem_mb=config["memory"]["tables"],
    script: "../scripts/choices.py"


def searched(study):
    """The runs by which a search chooses."""
    return [run for planned in plan.stages(config, study)[:2] for run in planned]


def choices_of(study):
    """What a study chose, where it is a search."""
    return f"{OUTPUT}/{study}/choices.csv" if study in SEARCHES else []


rule study:
    """The tables, page and figure of a study; further tables of its kind are written with them."""
    message: "Write the study {wildcards.study}"
    input:
        lambda wildcards: results_of_study(wildcards.study),
        lambda wildcards: choices_of(wildcards.study),
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


def results_of_studies():
    """Results of the runs of all studies."""
    return [file for study in STUDIES for file in results_of_study(study)]


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
        lambda wildcards: results_of_studies(),
