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
    """

    key: str
    result: Path
    record: Path

    @property
    def matches(self) -> bool:
        """Whether a record is published and has this key.

        Raises:
            DataError: if the record is damaged.
        """
        return self.record.is_file() and read_json(self.record).get("key") == self.key


def of_run(config: Config, run: plan.Run) -> Artefact:
    """The metrics of a run."""
    output, directory = _places(config)
    return Artefact(plan.key(config, run), output / "runs" / run.path / "metrics.json", directory / f"{run.path}.json")


def of_partition(config: Config, cut: plan.Cut) -> Artefact:
    """The statistics of a partition."""
    output, directory = _places(config)
    name = Path("partitions", f"{cut.path}.json")
    return Artefact(plan.partition_key(config, cut), output / name, directory / name)


def of_graph(config: Config, dataset: str) -> Artefact:
    """The statistics of a graph."""
    output, directory = _places(config)
    name = Path("graphs", f"{dataset}.json")
    return Artefact(plan.graph_key(config, dataset), output / name, directory / name)


def _places(config: Config) -> tuple[Path, Path]:
    return Path(config["output"]), Path(config["records"]["directory"])


def artefacts(config: Config) -> Iterator[Artefact]:
    """Everything that the configuration can publish."""
    yield from (of_run(config, run) for run in plan.all_runs(config))
    yield from (of_partition(config, cut) for cut in plan.cuts(config))
    yield from (of_graph(config, dataset) for dataset in config["datasets"])


def publish(config: Config) -> list[Path]:
    """Copy every result of the configuration to the records; returns the records that changed.

    Raises:
        DataError: if a result is missing, damaged, or was made from something else than is asked for now.
    """
    return [artefact.record for artefact in artefacts(config) if _publish(artefact)]


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


def reuse(record: Path, key: str, result: Path) -> None:
    """Write the result that a record holds, as the DAG would have written it.

    Raises:
        DataError: if the record is missing, damaged, or has another key.
    """
    content = read_json(record)
    _check(content, key, record)
    write_json(result, content.get("statistics", content))


def _check(content: dict[str, Any], key: str, path: Path) -> None:
    found = str(content.get("key"))
    if found != key:
        raise DataError(
            f"{path} has the key {found[:12]}…, but configuration, data and code now give {key[:12]}…; run `snakemake`"
        )
