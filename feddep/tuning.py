"""``feddep compare --tuned``: methods compared, each with hyperparameters of its own, which the
search of a study chooses.

Runs are kept in the folder of the comparison, so that the same command goes on where it stopped.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from feddep import leaderboard
from feddep.config.loading import Config, validate
from feddep.datasets.public_graphs import REGISTRY, clients_of
from feddep.experiment import plan
from feddep.reporting import output, studies
from feddep.training.config import PROTOCOLS

STUDY = "comparison"
"""The study of a comparison, in a configuration of its own."""


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
    plugins: Sequence[str] = (),
    **machine: Any,
) -> Config:
    """The configuration of a comparison whose arguments are those of :func:`feddep.api.compare`.

    Args:
        methods: of the first one, the others' differences.
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
        plugins: files with methods and encoders.
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
            "plugins": list(plugins),
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
