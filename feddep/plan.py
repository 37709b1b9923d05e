"""What there is to compute: the runs that a configuration asks for, and the content key of everything the DAG makes.

A key is a SHA-256 over all that determines a result: the options that matter to it, the data, and the code.  Two things
with the same key are the same thing, on whatever machine and under whatever name they were computed.  Not in a key:
the device, the number of threads, directories, and the name of a setting.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from feddep import frameworks, variants
from feddep.config import Config, entry, main_tables, variations
from feddep.provenance import ROOT, code_fingerprint
from feddep.reporting import studies
from feddep.storage import canonical_json


@dataclass(frozen=True)
class Run:
    """One training run: a row of the results.

    Attributes:
        setting: name of the hyperparameters, a key of ``settings``, or a variant of one (:mod:`feddep.variants`).
        dataset: a key of ``datasets``, or a variant of one.
        clients: number of clients M, or None for a framework that trains on the whole graph.
        framework: a key of ``frameworks``, or a variant of a framework.
        seed: one of ``seeds``; determines split, partition, initial weights and every draw.
    """

    setting: str
    dataset: str
    clients: int | None
    framework: str
    seed: int

    @property
    def path(self) -> str:
        """Where the run lies below ``runs/`` and the records, such as ``feddep/cora/m5/fedavg/seed0``."""
        return f"{self.setting}/{self.dataset}/{self.scope}/{self.framework}/seed{self.seed}"

    @property
    def scope(self) -> str:
        """What the framework is trained on, as a part of the path: ``whole``, or ``m5`` for 5 clients."""
        return "whole" if self.clients is None else f"m{self.clients}"


@dataclass(frozen=True)
class Cut:
    """One division of a dataset among clients.

    Attributes:
        dataset: a key of ``datasets``.
        clients: number of clients M.
        seed: one of ``seeds``.
    """

    dataset: str
    clients: int
    seed: int

    @property
    def path(self) -> str:
        """Where the partition lies below ``partitions/``, such as ``cora/m5/seed0``."""
        return f"{self.dataset}/m{self.clients}/seed{self.seed}"


def runs(config: Config) -> list[Run]:
    """Every run of the main tables, in the order of their keys; a whole-graph framework runs once, not once for each M."""
    return _runs_of(config, [{"settings": {setting: {}}} for setting in main_tables(config)])


def study_runs(config: Config, study: str) -> list[Run]:
    """Every run of a study, each once, in the order of its keys."""
    return _runs_of(config, config["studies"][study]["runs"])


def measured_runs(config: Config, key: str) -> list[Run]:
    """Every run that something is measured on beside its accuracy, each once, in the order of its keys.

    Args:
        config: the configuration.
        key: what is measured, one of :data:`feddep.config.MEASURED`.
    """
    return _runs_of(config, config[key])


def all_runs(config: Config) -> list[Run]:
    """Every run of the main tables and of the studies, each once."""
    return list(dict.fromkeys([*runs(config), *(run for study in config["studies"] for run in study_runs(config, study))]))


def _runs_of(config: Config, blocks: Iterable[Mapping[str, Any]]) -> list[Run]:
    return list(dict.fromkeys(run for block in blocks for run in _runs(config, block)))


def _runs(config: Config, block: Mapping[str, Any]) -> Iterator[Run]:
    """The runs of a block of a study; what it does not name is as in the main table, the first where it names no setting."""
    tables = main_tables(config)

    def names(section: str, main: Iterable[str]) -> list[str]:
        return variations(config, section, block.get(section, {name: {} for name in main}))

    for setting in names("settings", list(tables)[:1]):
        for dataset in names("datasets", config["datasets"]):
            for framework in names("frameworks", tables.get(variants.base(setting), [])):
                partitioned = frameworks.load(variants.base(framework)).PARTITIONED
                for clients in block.get("clients", config["clients"]) if partitioned else [None]:
                    for seed in block.get("seeds", config["seeds"]):
                        yield Run(setting, dataset, clients, framework, seed)


def cuts(config: Config) -> list[Cut]:
    """Every partition that a run of the main tables is trained on, each once."""
    return cuts_of(runs(config))


def cuts_of(those: Iterable[Run]) -> list[Cut]:
    """Every partition that one of these runs is trained on, each once."""
    needed = (Cut(variants.base(run.dataset), run.clients, run.seed) for run in those if run.clients is not None)
    return list(dict.fromkeys(needed))


def data_fingerprint(config: Config, dataset: str) -> str:
    """What identifies a dataset, known before it is downloaded.

    The fingerprint of its parsed graph, which the registry names; for a built-in graph the digest of its options and of
    the code that generates it.
    """
    from feddep.datasets.registry import REGISTRY

    synthetic = entry(config, "datasets", dataset).get("synthetic")
    if synthetic is None:
        return REGISTRY[variants.base(dataset)].fingerprint
    return digest({"synthetic": synthetic, "code": code_fingerprint("feddep.datasets.synthetic")})


def specification(config: Config, run: Run) -> dict[str, Any]:
    """Everything that determines a run but data and code: dataset options, split, partition, hyperparameters, seed."""
    partition = None if run.clients is None else {"clients": run.clients, **config["partition"]}
    return {
        "dataset": {"name": variants.base(run.dataset), **entry(config, "datasets", run.dataset)},
        "split": dict(config["split"]),
        "partition": partition,
        "setting": entry(config, "settings", run.setting),
        "framework": {"name": variants.base(run.framework), **entry(config, "frameworks", run.framework, run.dataset)},
        "seed": run.seed,
    }


def key(config: Config, run: Run) -> str:
    """The content key of a run; hex SHA-256."""
    partition = [] if run.clients is None else ["feddep.partition"]
    modules = [
        "feddep.stages.classify",
        frameworks.module_name(variants.base(run.framework)),
        "feddep.splits",
        "feddep.features",
        *partition,
    ]
    return digest(
        {
            "specification": specification(config, run),
            "data": data_fingerprint(config, run.dataset),
            "code": code_fingerprint(*modules),
        }
    )


def graph_key(config: Config, dataset: str) -> str:
    """The content key of a prepared graph and of its statistics.

    The code that reads raw files is not in it: the fingerprint of what it must yield is known.
    """
    return digest({"data": data_fingerprint(config, dataset), "code": code_fingerprint("feddep.datasets.statistics")})


def split_key(config: Config, dataset: str, seed: int) -> str:
    """The content key of a split."""
    return digest(
        {
            "data": data_fingerprint(config, dataset),
            "split": config["split"],
            "seed": seed,
            "code": code_fingerprint("feddep.stages.split"),
        }
    )


def partition_key(config: Config, cut: Cut) -> str:
    """The content key of a partition and of its statistics."""
    return digest(
        {
            "data": data_fingerprint(config, cut.dataset),
            "partition": config["partition"],
            "clients": cut.clients,
            "seed": cut.seed,
            "code": code_fingerprint("feddep.stages.partition"),
        }
    )


def digest(value: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON value in its canonical spelling; hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def findings_key(config: Config, stage: str) -> str:
    """The content key of what a stage makes of all finished runs: ``tables``, ``figures`` or ``report``."""
    return digest(
        {
            "runs": {run.path: key(config, run) for run in runs(config)},
            "partitions": {cut.path: partition_key(config, cut) for cut in cuts(config)},
            "graphs": {dataset: graph_key(config, dataset) for dataset in config["datasets"]},
            "published": _published(),
            "code": code_fingerprint(f"feddep.stages.{stage}"),
        }
    )


def study_key(config: Config, study: str) -> str:
    """The content key of what is made of a study's finished runs.

    Raises:
        ConfigError: if the study's kind is not known.
    """
    options = config["studies"][study]
    return digest(
        {
            "study": {study: options},
            "runs": {run.path: key(config, run) for run in study_runs(config, study)},
            "published": _published(),
            "code": code_fingerprint("feddep.stages.study", studies.module_name(study, options["kind"])),
        }
    )


def _published() -> dict[str, str]:
    resources = sorted(path for path in (ROOT / "reporting").rglob("*") if path.suffix in _RESOURCES)
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in resources}


_RESOURCES = (".csv", ".jinja")
"""Kinds of files in ``feddep/reporting`` that shape its output: the published numbers and the templates."""
