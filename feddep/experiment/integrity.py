"""Which files in a folder of results are damaged, or have another key than the configuration gives them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from feddep.config import variants
from feddep.config.loading import Config
from feddep.experiment import keys
from feddep.experiment.plan import Run
from feddep.experiment.step_jobs import StepJob
from feddep.utils.checksum_lists import find_mismatch
from feddep.utils.errors import DataError
from feddep.utils.storage import check_key, read_key

RESULTS = ("graphs", "splits", "partitions", "steps", "runs", "measurements")
"""Folders of arrays and results, which carry digests of their own."""
PAGES = ("tables", "figures", "report", "studies", "audit")
"""Folders of tables and figures, whose checksums stand in lists beside them."""


def expected_keys(config: Config, runs: Mapping[Run, str], steps: Iterable[StepJob]) -> dict[Path, str]:
    """The content keys of the files that runs are made of, by path.

    Args:
        config: the configuration.
        runs: the runs, each with its key.
        steps: their steps.
    """
    expected = {job.file: job.key for job in steps}
    for run, key in runs.items():
        expected |= {Path("runs", run.path, name): key for name in ("metrics.json", "model.safetensors")}
    for dataset, seed in {(variants.base(run.dataset), run.seed) for run in runs}:
        expected[Path("splits", dataset, f"seed{seed}.safetensors")] = keys.split_key(config, dataset, seed)
        expected[Path("graphs", f"{dataset}.safetensors")] = keys.graph_key(config, dataset)
    for spec in {run.partition for run in runs if run.partition is not None}:
        expected[Path("partitions", f"{spec.path}.safetensors")] = keys.partition_key(config, spec)
    described = ("steps", "graphs", "partitions")
    beside = {path.with_suffix(".json"): key for path, key in expected.items() if path.parts[0] in described}
    return {Path(config["output"], path): key for path, key in {**expected, **beside}.items()}


def damaged(output: str | Path, expected: Mapping[Path, str]) -> Iterator[tuple[Path, str]]:
    """Files that have to be made again.

    Args:
        output: the folder of results.
        expected: the keys that files must have (:func:`expected_keys`), and those of the lists of pages; others may have any.

    Yields:
        A file, and one sentence that says what is wrong with it.  Of pages it is their list of checksums, and of raw files their
        manifest: it is made together with them.
    """
    for path in _files(output, RESULTS, (".json", ".safetensors")):
        try:
            check_key(path, read_key(path), expected.get(path))
        except DataError as error:
            yield path, str(error)
    for path in _files(output, PAGES, (".sha256",)):
        if problem := find_mismatch(path, expected.get(path)):
            yield path, problem


def _files(output: str | Path, folders: tuple[str, ...], endings: tuple[str, ...]) -> Iterator[Path]:
    """Files with one of these endings in these folders, hidden ones left out, in order."""
    for folder in folders:
        found = Path(output, folder).rglob("*")
        yield from sorted(path for path in found if path.name.endswith(endings) and not path.name.startswith("."))
