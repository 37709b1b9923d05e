"""Names, numbers and the head of a study's page."""

from typing import Any

from feddep import variants
from feddep.reporting import labels
from feddep.reporting.studies.common.study import Study


def dataset_title(spelled: str) -> str:
    """``Cora, labelled=0.05``."""
    return _titled(spelled, labels.dataset_title(variants.base(spelled)))


def framework_title(spelled: str) -> str:
    """``FedDEP, prototypes=3``."""
    return _titled(spelled, labels.framework_title(variants.base(spelled)))


def _titled(spelled: str, title: str) -> str:
    changes = spelled.split(",")[1:]
    return ", ".join([title, *changes])


def place_title(dataset: str, clients: int | None) -> str:
    """``Cora, M=5``, or the dataset alone where the framework sees the whole graph."""
    return dataset_title(dataset) + ("" if clients is None else f", M={clients}")


def value(option: Any) -> str:
    """The value of an option, empty where there is none."""
    if option is None:
        return ""
    return option if isinstance(option, str) else f"{option:g}"


def plus_minus(mean: float | None, std: float | None) -> str:
    """``0.8650 ± 0.0040``, the mean alone, or nothing."""
    if mean is None:
        return ""
    return f"{mean:.4f}" if std is None else f"{mean:.4f} ± {std:.4f}"


def interval(mean: float | None, low: float | None, high: float | None) -> str:
    """``+0.0120 [+0.0010, +0.0230]``, the mean alone, or nothing."""
    if mean is None:
        return ""
    return f"{mean:+.4f}" if low is None else f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"


def page(study: Study, shows: str, body: str) -> str:
    """A study's page: title, what it shows, how many runs and seeds, tables."""
    return f"# {study.title}\n\n{shows.strip()}\n\n{len(study.runs)} runs, {_seeds(study)}.\n\n{body}"


def _seeds(study: Study) -> str:
    """``2 seeds (0, 2)``; where datasets have different ones, ``2 seeds (0, 2) on Cora, 1 seed (0) on PubMed``."""
    datasets: dict[tuple[int, ...], list[str]] = {}
    for dataset, runs in study.runs.groupby(study.runs["dataset"].map(variants.base), sort=False):
        datasets.setdefault(tuple(sorted(runs["seed"].unique())), []).append(labels.dataset_title(str(dataset)))
    counted = {
        seeds: f"{len(seeds)} {'seed' if len(seeds) == 1 else 'seeds'} ({', '.join(map(str, seeds))})" for seeds in datasets
    }
    if len(datasets) == 1:
        return next(iter(counted.values()))
    return ", ".join(f"{counted[seeds]} on {' and '.join(names)}" for seeds, names in datasets.items())
