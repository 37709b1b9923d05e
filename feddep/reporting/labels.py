"""What rows and columns are called, and in which order they stand: that of the papers' Table 2."""

from collections.abc import Callable, Iterable

from feddep import frameworks
from feddep.datasets.registry import REGISTRY

DATASETS = ("cora", "citeseer", "pubmed", "msacademic")
FRAMEWORKS = (
    "global",
    "local",
    "locsage_plus",
    "fedavg",
    "fedgnn",
    "fedgraph",
    "fedgsl",
    "fedsage_plus",
    "feddep_wo_dgen",
    "feddep_wo_proto",
    "feddep_wo_nfdp",
    "feddep",
)


def _rank(order: tuple[str, ...]) -> Callable[[str], tuple[int, str]]:
    return lambda name: (order.index(name) if name in order else len(order), name)


def sort_datasets(names: Iterable[str]) -> list[str]:
    """Distinct names in the papers' order, then those that no paper has, alphabetically."""
    return sorted(set(names), key=_rank(DATASETS))


def sort_frameworks(names: Iterable[str]) -> list[str]:
    """Distinct names in the papers' order of rows, then those that no paper has, alphabetically."""
    return sorted(set(names), key=_rank(FRAMEWORKS))


def dataset_title(name: str) -> str:
    """The registry's title of a dataset; a synthetic graph is called by its key."""
    return REGISTRY[name].title if name in REGISTRY else name


def framework_title(name: str) -> str:
    """The row label that the framework's module gives itself."""
    return str(frameworks.load(name).TITLE)
