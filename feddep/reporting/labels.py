"""Titles of rows and columns, and their order, that of the papers' Table 2."""

from collections.abc import Collection, Iterable
from typing import Any

import pandas as pd

from feddep.config import variants
from feddep.datasets.public_graphs import REGISTRY
from feddep.methods import registry
from feddep.methods.method import ORACLE

DATASETS = ("cora", "citeseer", "pubmed", "msacademic")
METHODS = (
    *("global", "local", "locsage_plus", "fedavg", "fedgnn", "fedgraph", "fedgsl", "fedsage_plus"),
    *("feddep_wo_dgen", "feddep_wo_proto", "feddep_wo_nfdp", "feddep"),
)


def sort_datasets(names: Iterable[str]) -> list[str]:
    """Distinct names in the papers' order; variants of one entry, and names that no paper has, as
    they come.
    """
    return _sorted(names, DATASETS)


def sort_methods(names: Iterable[str]) -> list[str]:
    """Distinct names in the papers' order of rows; variants of one entry, and names that no paper
    has, as they come.
    """
    return _sorted(names, METHODS)


def _sorted(names: Iterable[str], order: tuple[str, ...]) -> list[str]:
    ranks = {name: k for k, name in enumerate(order)}
    return sorted(dict.fromkeys(names), key=lambda name: ranks.get(variants.base(name), len(order)))


_IN_WORDS = {
    "partition=random": "random parts",
    "partition=metis": "METIS parts",
    "partition=dirichlet": "Dirichlet parts",
    "partition=louvain": "Louvain parts",
    "partition=overlap": "parts that overlap",
    "split=within_clients": "split within clients",
    "split=class_balanced": "split by class",
    "features=raw": "raw features",
    "features=row": "features scaled by row",
    "features=minmax": "features scaled to 0–1",
    "partition=shards": "parts of few classes",
    "split_unseen=true": "test nodes unseen",
    "noise=feature_sparsity": "features lost",
    "noise=topology_noise": "edges changed",
    "noise=label_noise": "labels wrong",
    "prototypes=null": "a prototype a class",
    "inference=zero": "nothing generated at inference",
    "inference=generated": "generated neighbours at inference",
    "release=one_shot": "one release",
    "release=per_step": "a release a step",
    "weights=dpsgd": "weights by DP-SGD",
}
_OPTIONS = {
    "accountant": "account",
    "bounding": "degrees bounded",
    "cross_weight": "weight of other clients",
    "degree": "maximum degree",
    "fused": "fusion of embeddings",
    "hidden_from": "nodes that may be hidden",
    "initial": "initial weights",
    "min_degree": "minimum degree",
    "scale": "distances",
    "sigma": "noise σ",
    "slots": "slots averaged",
}
_VALUES = {
    "adam": "Adam",
    "authors": "as in the authors' code",
    "concat": "concatenation",
    "dec": "DEC",
    "gat": "GAT",
    "gcn": "GCN",
    "gru": "GRU",
    "kl": "of probabilities",
    "kmeans": "k-means",
    "l1": "of logits",
    "mlp": "MLP",
    "openfgl": "as in OpenFGL",
    "paper": "as printed",
    "rdp": "RDP",
    "released": "as in the code",
    "sage": "GraphSAGE",
    "sage_selfloop": "GraphSAGE, self-loops",
    "sgd": "SGD",
    "written": "as printed",
}
_SHARES = {
    "labelled": "labelled",
    "split_train": "training",
    "split_val": "validation",
    "participation": "of clients a round",
    "lost_updates": "of updates lost",
}
_FORMS = {
    "clients": "{} clients",
    "new_clients": "{} new clients",
    "rounds": "{} rounds",
    "epsilon": "ε = {}",
    "label_epsilon": "ε = {} for labels",
    "theta": "θ = {}",
    "delta": "δ = {}",
}


def dataset_title(spelled: str) -> str:
    """``Cora``, or of a variant ``Cora, 5 % labelled``; a synthetic graph is called by its key."""
    name, *changes = spelled.split(",")
    title = REGISTRY[name].title if name in REGISTRY else name
    return ", ".join([title, *map(_in_words, changes)])


def in_words(label: str) -> str:
    """A label of a figure whose options are told in words: of ``FedGCN, labels=true, M=5`` it makes
    ``FedGCN, with labels, M=5``.
    """
    return ", ".join(map(_in_words, label.split(", ")))


def option_title(option: str) -> str:
    """An option in words, such as ``batch size``."""
    return _OPTIONS.get(option, option.replace("_", " "))


def value_title(value: str) -> str:
    """A value of an option in words."""
    return _VALUES.get(value, value.replace("_", " ").removesuffix(".0"))


def _in_words(change: str) -> str:
    option, sign, value = change.partition("=")
    if option in _SHARES:
        return f"{100 * float(value):g} % {_SHARES[option]}"
    if change in _IN_WORDS or not sign or len(option) == 1:  # as in M=5
        return _IN_WORDS.get(change, change.replace("_", " "))
    name, value = option_title(option), value_title(value)
    if value in ("true", "false", "null"):
        return f"{'with' if value == 'true' else 'without'} {name}"
    return _FORMS.get(option, name + (" {}" if value[0].isdigit() else ": {}")).format(value)


def graph_family(spelled: str) -> str:
    """What the edges of a public graph are, such as ``citation``; of another graph ``own``."""
    name = variants.base(spelled)
    return REGISTRY[name].family if name in REGISTRY else "own"


def method_title(spelled: str) -> str:
    """``FedDEP``, or of a variant ``FedDEP, prototypes=3``."""
    title = registry.find(variants.base(spelled)).title
    return ", ".join([title, *spelled.split(",")[1:]])


def is_oracle(spelled: str) -> bool:
    """Whether a method knows what no client can know."""
    return ORACLE in registry.find(variants.base(spelled)).assumes


def assumptions(spelled: str) -> str:
    """Assumptions of a method beyond FedAvg, joined by semicolons."""
    return "; ".join(registry.find(variants.base(spelled)).assumes)


def sees_more(spelled: str) -> bool:
    """Whether a method uses more of the graph than FedAvg: edges across clients, or the whole
    graph.
    """
    return any(
        part in assumptions(spelled) for part in ("cross-client edges", "whole graph", ORACLE)
    )


def family(spelled: str) -> str:
    """Methods that tests are corrected over together: those that see no more than FedAvg, those
    that :func:`sees_more` names; and Local, the control that is known to lose, by itself.
    """
    if variants.base(spelled) == "local":
        return "control"
    return "more" if sees_more(spelled) else "candidates"


def marked_title(method: str) -> str:
    """The title of a method, in italics if it uses more of the graph than FedAvg."""
    return f"*{method_title(method)}*" if sees_more(method) else method_title(method)


def distinguishing(spelled: Iterable[str]) -> dict[str, str]:
    """Of each name what tells it from the others: without the changes that all variants of its
    entry share.
    """
    changes = {name: changes_of(name).items() for name in spelled}

    def told(name: str) -> dict[str, Any]:
        alike = [
            has for other, has in changes.items() if variants.base(other) == variants.base(name)
        ]
        return dict(change for change in changes[name] if not all(change in has for has in alike))

    return {name: variants.format_name(variants.base(name), told(name)) for name in changes}


def changes_of(label: str) -> dict[str, Any]:
    """The options that the label of a table spells out, with their values."""
    return variants.read(label)[1]


def without(label: str, options: Collection[str]) -> str:
    """A label without some of its options."""
    kept = {key: value for key, value in changes_of(label).items() if key not in options}
    return variants.format_name(variants.base(label), kept)


def place_title(dataset: str, clients: int | None) -> str:
    """``Cora, M=5``, or the dataset alone where the method sees the whole graph."""
    return dataset_title(dataset) + ("" if clients is None else f", M={clients}")


def places(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Settings and datasets of a table, in the order of its rows."""
    return list(dict.fromkeys(zip(table["setting"], table["dataset"], strict=True)))


def panel_title(table: pd.DataFrame, setting: str, dataset: str) -> str:
    """The dataset, and the setting if the table has several."""
    return dataset_title(dataset) + ("" if table["setting"].nunique() == 1 else f", {setting}")
