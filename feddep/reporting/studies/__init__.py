"""Studies beside the main table, such as a sweep over one option: the kinds that there are, one
module a kind.

A kind is a module ``KIND.py`` of this package or, where one paper alone needs it, of a folder
``studies/GROUP/kinds`` of the working folder.  It has ``SHOWS``, how to read its table, in
Markdown; ``tables(study)``, its tables by file name, the main one called ``table``;
``markdown(study, tables)``, these for people to read; and ``figure(study, tables)``.  ``study`` is
a :class:`feddep.reporting.load.Study`.  Nothing else needs to know of a kind.  A plugin's kind is
a class with the same (:data:`feddep.methods.plugins.KINDS`).
"""

import difflib
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from feddep.config.loading import STUDIES
from feddep.experiment import plan
from feddep.methods import plugins
from feddep.utils.errors import ConfigError

if TYPE_CHECKING:
    from feddep.config.loading import Config


def available() -> dict[str, str]:
    """The module of each kind, sorted by the kind's name."""
    brought = {
        path.stem: ".".join(path.with_suffix("").parts) for path in STUDIES.glob("*/kinds/*.py")
    }
    shared = {module.name: f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)}
    return dict(sorted({**brought, **shared}.items()))


def check_kinds(config: "Config") -> None:
    """Make sure that something makes each study.

    Raises:
        ConfigError: if there is no such kind, or a comparison in pairs has one method.
    """
    known = {
        *available(),
        *plugins.KINDS,
        *(path.parent.name for path in STUDIES.glob("*/*/measure.py")),
    }
    for name, study in config["studies"].items():
        if study["kind"] not in known:
            (nearest,) = difflib.get_close_matches(study["kind"], known, 1, cutoff=0)
            raise ConfigError(
                f"studies.{name}.kind is {study['kind']}; known are {', '.join(sorted(known))}; "
                f"the nearest is {nearest}"
            )
        methods = [run.method.label for run in plan.study_runs(config, name)]
        if study["kind"] == "paired" and len({*methods}) == 1:
            raise ConfigError(
                f"studies.{name} is paired and has the method {methods[0]} alone; two or more are "
                "needed"
            )


def contents(config: "Config", name: str) -> dict[str, Any]:
    """Tables, page and figure of a study, by file name, for :func:`feddep.reporting.output.write`.

    Raises:
        ConfigError: if there is no such study.
        DataError: if a run has not been trained, or a file is damaged.
    """
    from feddep.config import variants
    from feddep.reporting import load, markdown
    from feddep.reporting.labels import dataset_title

    study = load.load(config, name)
    kind = study.entry["kind"]
    module = plugins.KINDS.get(kind) or importlib.import_module(available()[kind])
    tables = module.tables(study)
    body = markdown.explained(module.markdown(study, tables))
    figure = module.figure(study, tables)
    title = markdown.text(study.title)
    judged = any("verdict" in table for table in tables.values())
    parts = [
        f"# {title}",
        f"![{markdown.text(figure.get_label() or study.title)}](figure.svg)",
        module.SHOWS,
        body,
        load.provenance(study.recorded, study.margin if judged else None),
    ]
    by_area = study.runs["setting"].str.contains("metric=roc_auc", regex=False)
    if by_area.any():
        graphs = dict.fromkeys(
            map(dataset_title, map(variants.base, study.runs.loc[by_area, "dataset"]))
        )
        parts.insert(2, f"Accuracy on {', '.join(graphs)} is the area under the ROC curve.")
    page = "\n\n".join(part.strip() for part in parts) + "\n"
    return {
        **{f"{each}.csv": table for each, table in tables.items()},
        "page.md": page,
        "figure": figure,
    }
