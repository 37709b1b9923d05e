"""Content keys of tables, figures and pages: what they show, the published numbers, and the code that writes them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from feddep.config import variants
from feddep.config.loading import Config
from feddep.experiment import keys, plan
from feddep.experiment.fingerprint import ROOT, code_fingerprint
from feddep.methods import registry
from feddep.reporting import agreement, studies

_RESOURCES = (".csv", ".jinja", ".js")
"""Kinds of files in ``feddep/reporting`` that shape its output: the published numbers, the templates and the script."""


def tables_key(config: Config, stage: str) -> str:
    """The key of what a stage makes of all finished runs: tables, figures or the report.

    Args:
        config: the configuration.
        stage: the module of :mod:`feddep.stages`.
    """
    return _key(shown_in_tables(config), f"feddep.stages.{stage}")


def study_key(config: Config, study: str) -> str:
    """The key of what is made of a study's finished runs.

    Raises:
        ConfigError: if the study's kind is not known.
    """
    return _key(
        shown_in_study(config, study), "feddep.stages.write_study", studies.module_name(study, config["studies"][study]["kind"])
    )


def agreement_key(config: Config) -> str:
    """The key of the comparison of all published numbers with ours."""
    return _key(shown_in_agreement(config), "feddep.stages.write_agreement")


def shown_in_tables(config: Config) -> str:
    """The part of :func:`tables_key` that tells what is shown, whatever the code that shows it: runs, partitions and graphs."""
    shown = {
        "partitions": {spec.path: keys.partition_key(config, spec) for spec in plan.partitions(config)},
        "graphs": {dataset: keys.graph_key(config, dataset) for dataset in plan.datasets(config)},
    }
    return _shown(config, plan.runs(config), shown)


def shown_in_study(config: Config, study: str) -> str:
    """The part of :func:`study_key` that tells what is shown: runs and options of the study."""
    return _shown(config, plan.study_runs(config, study), {"study": {study: config["studies"][study]}})


def shown_in_agreement(config: Config) -> str:
    """The part of :func:`agreement_key` that tells what is shown: runs and seeds."""
    return _shown(config, agreement.runs_of(config), {"seeds": config["seeds"]})


def shown_keys(config: Config) -> dict[Path, str]:
    """By path of the list of checksums of each page that is made of runs alone: the key of what the page is to show.

    A page whose list has another was made of another configuration.  Pages of measurements are not among them.
    """
    all_runs = shown_in_tables(config)
    lists = dict.fromkeys(("tables/tables", "figures/figures", "report/report"), all_runs)
    lists["tables/reproduction"] = shown_in_agreement(config)
    for study, options in config["studies"].items():
        shown = shown_in_study(config, study)
        lists |= {f"studies/{study}/{page}": shown for page in ("study", *studies.FURTHER_TABLES.get(options["kind"], ()))}
    return {Path(config["output"], f"{name}.sha256"): key for name, key in lists.items()}


def _shown(config: Config, runs: Iterable[plan.Run], shown: Mapping[str, Any]) -> str:
    runs = list(runs)
    methods = (registry.find(name) for name in {variants.base(run.method) for run in runs})
    return keys.digest(
        {
            **shown,
            "runs": {run.path: keys.run_key(config, run) for run in runs},
            "methods": {each.name: [each.title, each.assumes] for each in methods},
        }
    )


def _key(shown: str, *modules: str) -> str:
    resources = sorted(path for path in (ROOT / "reporting").rglob("*") if path.suffix in _RESOURCES)
    return keys.digest(
        {
            "shown": shown,
            "published": {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in resources},
            "code": code_fingerprint(*modules),
        }
    )
