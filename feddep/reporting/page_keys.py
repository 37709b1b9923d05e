"""Content keys of tables, figures and pages: what they show, the published numbers, and the code that writes them."""

from collections.abc import Iterable, Mapping
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
    shown = {
        "partitions": {spec.path: keys.partition_key(config, spec) for spec in plan.partitions(config)},
        "graphs": {dataset: keys.graph_key(config, dataset) for dataset in plan.datasets(config)},
    }
    return _key(config, plan.runs(config), shown, f"feddep.stages.{stage}")


def study_key(config: Config, study: str) -> str:
    """The key of what is made of a study's finished runs.

    Raises:
        ConfigError: if the study's kind is not known.
    """
    options = config["studies"][study]
    modules = "feddep.stages.write_study", studies.module_name(study, options["kind"])
    return _key(config, plan.study_runs(config, study), {"study": {study: options}}, *modules)


def agreement_key(config: Config) -> str:
    """The key of the comparison of all published numbers with ours."""
    return _key(config, agreement.runs_of(config), {"seeds": config["seeds"]}, "feddep.stages.write_agreement")


def _key(config: Config, runs: Iterable[plan.Run], shown: Mapping[str, Any], *modules: str) -> str:
    runs = list(runs)
    frameworks = (registry.find(name) for name in {variants.base(run.framework) for run in runs})
    resources = sorted(path for path in (ROOT / "reporting").rglob("*") if path.suffix in _RESOURCES)
    return keys.digest(
        {
            **shown,
            "runs": {run.path: keys.run_key(config, run) for run in runs},
            "frameworks": {each.name: [each.title, each.assumes] for each in frameworks},
            "published": {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in resources},
            "code": code_fingerprint(*modules),
        }
    )
