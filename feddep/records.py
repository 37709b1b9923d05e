"""Published records: finished results kept in git, recognised by their content key, so that nobody has to train twice.

A record of a run is its ``metrics.json``.  A record of a graph or of a partition holds its statistics, for the table of
the partitions, so that the tables can be rebuilt without any data.  A record whose key is not the one that configuration,
data and code give now is never used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feddep import plan
from feddep.config import Config
from feddep.errors import DataError
from feddep.storage import read_json, write_json


@dataclass(frozen=True)
class Artefact:
    """A small result of the DAG that can be published.

    Attributes:
        key: content key that configuration, data and code give now.
        result: where the DAG writes it.
        record: where its published record is.
        usable: whether the configuration lets records stand in for results.
    """

    key: str
    result: Path
    record: Path
    usable: bool

    @property
    def matches(self) -> bool:
        """Whether a record is published and has this key.

        Raises:
            DataError: if the record is damaged.
        """
        return self.record.is_file() and read_json(self.record).get("key") == self.key

    @property
    def source(self) -> Path:
        """Where to read it: from the record, if that may be used and has the key, else from the result.

        Raises:
            DataError: if the record is damaged.
        """
        return self.record if self.usable and self.matches else self.result

    def statistics(self) -> dict[str, Any]:
        """The statistics of a graph or partition, from :attr:`source`.

        Raises:
            DataError: if they are missing or damaged.
        """
        content = read_json(self.source)
        return content.get("statistics", content)


def of_run(config: Config, run: plan.Run) -> Artefact:
    """The metrics of a run."""
    return _artefact(config, plan.key(config, run), f"runs/{run.path}/metrics.json", f"{run.path}.json")


def of_partition(config: Config, cut: plan.Cut) -> Artefact:
    """The statistics of a partition."""
    name = f"partitions/{cut.path}.json"
    return _artefact(config, plan.partition_key(config, cut), name, name)


def of_graph(config: Config, dataset: str) -> Artefact:
    """The statistics of a graph."""
    name = f"graphs/{dataset}.json"
    return _artefact(config, plan.graph_key(config, dataset), name, name)


def _artefact(config: Config, key: str, result: str, record: str) -> Artefact:
    published = config["records"]
    return Artefact(key, Path(config["output"], result), Path(published["directory"], record), published["use"])


def artefacts(config: Config) -> Iterator[Artefact]:
    """Everything that the configuration can publish."""
    yield from (of_run(config, run) for run in plan.all_runs(config))
    yield from (of_partition(config, cut) for cut in plan.cuts(config))
    yield from (of_graph(config, dataset) for dataset in config["datasets"])


def publish(config: Config) -> list[Path]:
    """Copy every result of the configuration that no record stands in for to the records; returns the records that changed.

    Raises:
        DataError: if a result is missing, damaged, or was made from something else than is asked for now.
    """
    return [artefact.record for artefact in artefacts(config) if artefact.source == artefact.result and _publish(artefact)]


def _publish(artefact: Artefact) -> bool:
    result = read_json(artefact.result)
    if "key" in result:
        _check(result, artefact.key, artefact.result)
    else:  # statistics do not name their key
        result = {"key": artefact.key, "statistics": result}
    if artefact.record.is_file() and read_json(artefact.record) == result:
        return False
    write_json(artefact.record, result)
    return True


def _check(content: dict[str, Any], key: str, path: Path) -> None:
    found = str(content.get("key"))
    if found != key:
        raise DataError(
            f"{path} has the key {found[:12]}…, but configuration, data and code now give {key[:12]}…; run `snakemake`"
        )
