"""Methods compared, each with hyperparameters of its own: those that a search of these chooses, or
those that a recorded search chose on other graphs.

Runs of a search are kept in the folder of the comparison, so that the same command goes on where it
stopped.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from feddep import leaderboard
from feddep.config import variants
from feddep.config.loading import Config, validate
from feddep.datasets.public_graphs import REGISTRY, clients_of
from feddep.experiment import plan, runs
from feddep.reporting import load, output, statistics, studies
from feddep.reporting.labels import method_title
from feddep.training.config import PROTOCOLS

STUDY = "comparison"
"""The study of a comparison, in a configuration of its own."""
RESULTS = Path("results")
"""Where recorded searches are, in the working folder."""
DEFAULTS = "defaults"
"""The configuration of a method that no search chose."""
_MEASURED = [
    "method",
    "seed",
    "test",
    *statistics.LOCAL,
    "validation",
    "bytes",
    "seconds",
    "stalled",
]


def configuration(
    methods: Sequence[str],
    graph: str,
    folder: Path,
    trials: int,
    *,
    clients: int | None = None,
    seeds: int = 3,
    partition: str | None = None,
    split: str | None = None,
    protocol: str = "global",
    setting: Mapping[str, Any] | None = None,
    features: str = "raw",
    **machine: Any,
) -> Config:
    """The configuration of a comparison whose arguments are those of :func:`feddep.api.compare`.

    Args:
        methods: their names; of the first one, the others' differences.
        graph: name of a public dataset, or path of a graph of one's own.
        folder: where to.
        trials: of each method.
        clients: number of clients M.
        seeds: number of repetitions.
        partition: method of the partition.
        split: method of the split.
        protocol: ``global`` or ``field``.
        setting: what differs from the protocol's.
        features: scaling.
        machine: ``device`` and ``threads``.

    Raises:
        ConfigError: as :func:`feddep.config.loading.validate`.
    """
    preset, name = PROTOCOLS[protocol], graph if graph in REGISTRY else "graph"
    source, several = {} if graph in REGISTRY else {"path": graph}, clients_of(name)
    clients = clients or (len(several) if several else preset["clients"])
    search = {
        **{"setting": protocol, "datasets": [name], "methods": list(methods)},
        **{"clients": clients, "trials": trials},
    }
    return validate(
        {
            **machine,
            "output": str(folder),
            "records": {"directory": str(folder / "runs"), "use": False},
            "datasets": {name: {"features": features, **source}},
            "clients": [clients],
            "seeds": list(range(seeds)),
            "split": {**preset["split"], **({"method": split} if split else {})},
            "partition": {"method": partition} if partition else {},
            "settings": {protocol: {**preset["setting"], **(setting or {})}},
            "tables": [{"setting": protocol, "methods": list(methods)}],
            "studies": [{"name": STUDY, "kind": "searched", "search": search}],
        }
    )


def compare(config: Config) -> str:
    """Search, train what was chosen, and write tables, page and figure to the folder of the
    configuration; returns the page.

    Raises:
        DivergenceError: if what was chosen diverges.
    """
    folder = Path(config["output"])
    leaderboard.search(config, STUDY, folder / ".cache" / "raw")
    contents = studies.contents(config, STUDY)
    output.write(folder, {**contents, "choices.csv": plan.choices(config, STUDY)})
    return str(contents["page.md"])


def search(*given: Any, **options: Any) -> pd.DataFrame:
    """Search and :func:`compare`; arguments are those of :func:`configuration`. Returns the runs of
    what was chosen, as :func:`feddep.api.compare` has them.
    """
    config, found = configuration(*given, **options), []
    compare(config)
    for how, of in plan.final_runs(config, STUDY).items():
        recorded = runs.load(config, of)
        told = load.tidy(recorded)
        frame = recorded[_MEASURED].assign(unfinished=told["unfinished"], configuration=how)
        if recorded["validation_after"].notna().all():
            frame["owners"] = told["test"]
        found.append(frame.assign(method=frame["method"].map(variants.base)))
    return pd.concat(found, ignore_index=True)


def out_of_the_box(graph: str, protocol: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """What recorded searches with a protocol chose for each method on all graphs but this: what it
    changes of the setting, and of the parameters.
    """
    found = {}
    for file in sorted(RESULTS.glob("*/choices.csv")):
        table = pd.read_csv(file, keep_default_na=False)
        if "configuration" not in table:
            continue
        table = table[
            (table["configuration"] == plan.ELSEWHERE)
            & (table["chosen_setting"].map(variants.base) == protocol)
        ]
        names = table["dataset"].map(variants.base)
        for row in table[names == (graph if graph in {*names} else "")].to_dict("records"):
            (_, setting), (name, parameters) = (
                variants.read(row[f"chosen_{part}"]) for part in ("setting", "method")
            )
            found[name] = setting, parameters
    return found


def recorded_reference(graph: str, protocol: str, clients: int | None) -> str:
    """In a sentence, how accurate the reference of recorded tuned methods is on a graph, divided as
    the protocol has it, in the study where it is best; empty where there is none.
    """
    preset = PROTOCOLS[protocol]
    division = {
        "split" if key == "method" else f"split_{key}": value
        for key, value in preset["split"].items()
    }
    place = variants.format_name(graph, division)
    clients, found = clients or len(clients_of(graph)) or preset["clients"], [(0.0, "")]
    for file in sorted(RESULTS.glob("*/choices.csv")):
        protocols = pd.read_csv(file)["chosen_setting"].map(variants.base)
        table = pd.read_csv(file.with_name("table.csv"))
        here = table[
            (table["dataset"] == place)
            & (table["clients"] == clients)
            & (table["method"] == table["reference"])
        ]
        if len(here) and (protocols == protocol).all():
            title, mean = method_title(here["method"].iloc[0]), here["mean"].iloc[0]
            found.append((mean, f"Tuned here, {title} has {mean:.3f} ({file.parent})."))
    return max(found)[1]
