"""Tables of the statistics of graphs and partitions: a row each, recognised by its key, as the
table of runs has them.

``results/runs/graphs.csv`` and ``partitions.csv`` are in git, so that the tables of the pages can
be made without any data.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from feddep.config.loading import Config
from feddep.utils.csv_files import FROM_0, PRINTED, append_rows, read_checked
from feddep.utils.files import exclusive, read_json

Kind = Literal["graphs", "partitions"]
_TYPES = {
    "graphs": {
        **dict.fromkeys(("key", "name", "source", "fingerprint", "label_counts"), "string"),
        **dict.fromkeys(("nodes", "edges", "features", "classes", "max_degree"), "int64"),
        **dict.fromkeys(("components", "largest_component", "isolated_nodes"), "int64"),
        **dict.fromkeys(("mean_degree", "edge_homophily", "words_per_node"), "float64"),
    },
    "partitions": {
        **dict.fromkeys(("key", "dataset", "per_client", "method", "engine"), "string"),
        **dict.fromkeys(("clients", "seed", "missing_edges", "cut_nodes"), "int64"),
        **dict.fromkeys(("mean_client_nodes", "mean_client_edges", "modularity"), "float64"),
        "communities": "Int64",
    },
}
_LIST = r"\[\d+(, \d+)*\]"
_CLIENT = rf'\{{"classes": {_LIST}, "client": \d+, "edges": \d+, "nodes": \d+\}}'
_ALLOWED: dict[str, str | tuple[float, float]] = {
    "key": "[0-9a-f]{16}",
    **dict.fromkeys(("name", "dataset"), r"[a-z]\w*"),
    "source": PRINTED,
    "fingerprint": "[0-9a-f]{64}",
    "label_counts": _LIST,
    "per_client": rf"\[{_CLIENT}(, {_CLIENT})*\]",
    "edge_homophily": (0, 1),
    "modularity": (-1, 1),
}
_OPTIONAL = ("edge_homophily", "communities", "modularity", "method", "engine")


def missing(config: Config, kind: Kind, files: Mapping[str, str]) -> dict[str, str]:
    """Of files by key those that no table stands in for."""
    table = _table(config, kind)
    known = (
        set(_read_table(table, kind)["key"])
        if config["records"]["use"] and table.is_file()
        else set()
    )
    return {key: file for key, file in files.items() if key not in known}


def load(config: Config, kind: Kind, files: Mapping[str, str]) -> list[dict[str, Any]]:
    """The statistics of graphs or partitions, in the order of their keys; ``files``: where they are
    if no table has them.

    Raises:
        DataError: if one is in neither.
    """
    absent = missing(config, kind, files)
    known: dict[str, Any] = {}
    if len(absent) < len(files):
        known = {
            str(key): row
            for key, row in _read_table(_table(config, kind), kind).to_dict("index").items()
        }
    return [_read(file, key) if key in absent else dict(known[key]) for key, file in files.items()]


def publish(config: Config, kind: Kind, files: Mapping[str, str]) -> int:
    """Add the statistics that no table has to the table of their kind; returns how many."""
    table = _table(config, kind)
    with exclusive(table.parent):
        known = set(_read_table(table, kind)["key"]) if table.is_file() else set()
        rows = [{"key": key, **_read(file, key)} for key, file in files.items() if key not in known]
        if rows:
            found = pd.DataFrame(rows)
            order = [name for name in ("name", "dataset", "clients", "seed") if name in found]
            append_rows(table, found.sort_values(order))
    return len(rows)


def _table(config: Config, kind: Kind) -> Path:
    return Path(config["records"]["directory"], f"{kind}.csv")


def _read_table(file: Path, kind: Kind) -> pd.DataFrame:
    types = _TYPES[kind]
    numbers = dict.fromkeys((name for name in types if types[name] != "string"), FROM_0)
    allowed = {**numbers, **_ALLOWED}
    return read_checked(file, types, allowed, _OPTIONAL).set_index("key", drop=False)


def _read(file: str, key: str) -> dict[str, Any]:
    """Statistics of a file; lists and mappings as JSON, as a table has them."""
    return {
        name: json.dumps(value) if isinstance(value, list | dict) else value
        for name, value in read_json(file, key).items()
    }
