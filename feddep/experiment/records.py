"""Published records: finished results kept in git, recognised by their content key, so that nobody has to train twice.

A record of a run is its ``metrics.json``.  A record of a graph or of a partition holds its statistics, for the table of
the partitions, so that the tables can be rebuilt without any data.  A record with another key is never used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from feddep.config import variants
from feddep.config.loading import Config
from feddep.experiment import fingerprint, keys, plan
from feddep.methods import plugins, registry
from feddep.utils.errors import DataError
from feddep.utils.storage import read_result, write_result


@dataclass(frozen=True)
class Artifact:
    """A small result of the DAG that can be published.

    Attributes:
        key: content key that configuration and revisions give now.
        result: where the DAG writes it.
        record: where its published record is.
        usable: whether the configuration lets records stand in for results.
        code: fingerprint of the code that computes it now; None where none is kept.
        strict: whether a record of other code may not stand in.
    """

    key: str
    result: Path
    record: Path
    usable: bool = True
    code: str | None = None
    strict: bool = False

    @cached_property
    def _published(self) -> tuple[str | None, str | None]:
        """Key and code fingerprint of the record, if there is one."""
        if not self.record.is_file():
            return None, None
        content = read(self.record)
        return content.get("key"), content.get("provenance", {}).get("code")

    @property
    def matches(self) -> bool:
        """Whether a record is published and has this key.

        Raises:
            DataError: if the record is damaged.
        """
        return self._published[0] == self.key

    @property
    def outdated(self) -> bool:
        """Whether the record has this key, but was made or verified with other code."""
        return self.matches and self.code is not None and self._published[1] != self.code

    @property
    def source(self) -> Path:
        """Where to read it: from the record, if that may be used and has the key, else from the result.

        Raises:
            DataError: if the record is damaged.
        """
        return self.record if self.usable and self.matches and not (self.strict and self.outdated) else self.result

    def statistics(self) -> dict[str, Any]:
        """The statistics of a graph or partition, from :attr:`source`.

        Raises:
            DataError: if they are missing, damaged or stale.
        """
        return dict(read(self.source, self.key)["statistics"])


def read(path: Path, key: str | None = None) -> dict[str, Any]:
    """A record or a result: of a run its key, result and provenance; of a graph or partition its key and statistics.

    Args:
        path: the file.
        key: what its key must be; any without it.

    Raises:
        DataError: if it is missing, damaged or something else, or has another key.
    """
    content = read_result(path, key)
    parts = (content.get(part) for part in ("result", "provenance"))
    if not (isinstance(content.get("statistics"), dict) or all(isinstance(part, dict) for part in parts)):
        raise DataError(f"{path} holds no record or result; delete it and run `snakemake` to make it again")
    return content


def of_run(config: Config, run: plan.Run) -> Artifact:
    """The metrics of a run."""
    published = config["records"]
    result, record = Path(config["output"], "runs", run.path, "metrics.json"), Path(published["directory"], f"{run.path}.json")
    code = run_fingerprint(config, run)
    return Artifact(keys.run_key(config, run), result, record, published["use"], code, published["strict"])


def run_fingerprint(config: Config, run: plan.Run) -> str:
    """The fingerprint of the code that computes a run: its method, its steps, and what every run is computed with.

    Of a plugin, whose own code is in the run's key, it is what that imports from this package.
    """
    method = registry.find(variants.base(run.method))
    steps = method.steps(registry.configured(keys.specification(config, run)["method"])[1])
    functions = [method.function, *(step.function for step in steps)]
    modules = {module for module in (function.partition(":")[0] for function in functions) if module.startswith("feddep.")}
    if plugin := plugins.plugin_of(method.name):
        modules |= fingerprint.imported_by([Path(str(plugin.module.__file__)).read_text()])
    of_partition = () if run.clients is None else keys.partition_modules(config, run.dataset)
    shared = {"feddep.graph.split", "feddep.graph.scaling", *(module.__name__ for module in of_partition)}
    return fingerprint.code_fingerprint(*sorted(modules | shared))


def of_partition(config: Config, spec: plan.PartitionSpec) -> Artifact:
    """The statistics of a partition."""
    return _of_statistics(config, keys.partition_key(config, spec), f"partitions/{spec.path}.json")


def of_graph(config: Config, dataset: str) -> Artifact:
    """The statistics of a graph."""
    return _of_statistics(config, keys.graph_key(config, dataset), f"graphs/{dataset}.json")


def _of_statistics(config: Config, key: str, name: str) -> Artifact:
    published = config["records"]
    return Artifact(key, Path(config["output"], name), Path(published["directory"], name), published["use"])


def artifacts(config: Config) -> Iterator[Artifact]:
    """Everything that the configuration can publish."""
    yield from (of_run(config, run) for run in plan.all_runs(config))
    yield from (of_partition(config, spec) for spec in plan.partitions(config))
    yield from (of_graph(config, dataset) for dataset in plan.datasets(config))


def publish(config: Config) -> list[Path]:
    """Copy every result of the configuration that no record stands in for to the records; returns the records that changed.

    Raises:
        DataError: if a result is missing, damaged, or was made from something else than is asked for now.
    """
    return [artifact.record for artifact in artifacts(config) if artifact.source == artifact.result and _publish(artifact)]


def _publish(artifact: Artifact) -> bool:
    result = read(artifact.result, artifact.key)
    if artifact.record.is_file() and read(artifact.record) == result:
        return False
    write_result(artifact.record, result)
    return True
