"""Content keys: a SHA-256 over all that determines a result, so that two things with the same key
are the same thing.

A key holds the options that matter, the fingerprint of the data and the revisions of what computes:
numbers that are declared beside split, partition, scaling, training, steps and methods, and raised
by whoever changes their numbers.  Golden results (``tests/golden``) fail when numbers move and the
revision did not.  Not in a key: source code, but that of plugins (:mod:`feddep.methods.plugins`),
device, number of threads, folders, the name of a setting.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from feddep import training
from feddep.config import variants
from feddep.config.loading import PARTITION, SPLIT, Config, entry
from feddep.datasets import own_files, synthetic
from feddep.datasets.public_graphs import REGISTRY
from feddep.experiment.plan import PartitionSpec, Run
from feddep.graph import partition, partitioners, scaling, split
from feddep.methods import plugins, registry
from feddep.methods.method import Method, Step
from feddep.training.config import TrainingConfig
from feddep.utils.files import canonical_json
from feddep.utils.parameters import Parameters

_COMPUTING = {"split": split, "scaling": scaling, "training": training}
_DIVIDING = {"partition": partition, "partitioners": partitioners}


def digest(value: Mapping[str, Any]) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a JSON value in its canonical spelling."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]


@cache
def data_fingerprint(config: Config, dataset: str) -> str:
    """What identifies a dataset, known before it is downloaded.

    The fingerprint of its parsed graph, which the registry names, or the digest of its release
    where that is not known yet (:attr:`feddep.datasets.public_graphs.Dataset.identity`); for a
    graph of one's own the digest of its files (:func:`own_fingerprint`); for a built-in graph the
    digest of its options and of the revision of what generates it.

    Raises:
        DataError: if a graph of one's own is not there.
    """
    options = entry(config, "datasets", dataset)
    if "path" in options:
        return own_fingerprint(options["path"])
    if "synthetic" in options:
        return digest({"synthetic": options["synthetic"], "revision": synthetic.REVISION})
    return REGISTRY[variants.base(dataset)].identity


def own_fingerprint(path: str) -> str:
    """What identifies a graph of one's own: the content of its files, wherever they lie, and the
    revision of what reads them.

    Raises:
        DataError: if they are not there.
    """
    return digest({"files": own_files.checksums(path), "revision": own_files.REVISION})


def specification(config: Config, run: Run) -> dict[str, Any]:
    """Everything that determines a run but data and revisions: dataset options, split, partition,
    hyperparameters, seed.
    """
    given = entry(config, "datasets", run.dataset)
    options = {
        key: value
        for key, value in given.items()
        if key != "path" and key not in PARTITION and key not in SPLIT
    }
    if given["split"] == "random":
        del options["split"]
    return {
        "dataset": {"name": variants.base(run.dataset), **options},
        "split": split_shares(config, run.dataset),
        "partition": None
        if run.clients is None
        else {"clients": run.clients, **partition_options(config, run.dataset)},
        "setting": TrainingConfig(**entry(config, "settings", run.setting)).in_key(),
        "method": {
            "name": variants.base(run.method),
            **entry(config, "methods", run.method, variants.base(run.dataset)),
        },
        "seed": run.seed,
    }


def split_shares(config: Config, dataset: str) -> dict[str, float]:
    """The shares of a dataset's training, validation and test nodes."""
    given = entry(config, "datasets", dataset)
    shares = {**config["split"], **{option: given[key] for key, option in SPLIT.items()}}
    changed = shares != config["split"]
    return {**shares, "test": round(1 - shares["train"] - shares["val"], 9)} if changed else shares


def partition_options(config: Config, dataset: str) -> dict[str, Any]:
    """The options of a dataset's partition that its method reads, as
    :func:`feddep.graph.partitioners.partition` takes them.
    """
    given = {option: entry(config, "datasets", dataset)[key] for key, option in PARTITION.items()}
    return {
        option: given[option]
        for option in ("method", *partitioners.OPTIONS.get(given["method"], ()))
    }


@cache
def configured(
    config: Config, method: str, dataset: str
) -> tuple[Method, Parameters, tuple[Step, ...]]:
    """A method as it is spelled, its parameters on a dataset, and its steps."""
    options = {
        "name": variants.base(method),
        **entry(config, "methods", method, variants.base(dataset)),
    }
    found, parameters = registry.configured(options)
    return found, parameters, tuple(found.steps(parameters))


@cache
def run_key(config: Config, run: Run) -> str:
    """The content key of a run."""
    _, _, steps = configured(config, run.method, variants.base(run.dataset))
    return specified_key(specification(config, run), data_fingerprint(config, run.dataset), steps)


def specified_key(specification: Mapping[str, Any], data: str, steps: Sequence[Step]) -> str:
    """The content key of a run of that specification, on data of that fingerprint, with the steps
    of its method.
    """
    method = registry.find(specification["method"]["name"])
    revisions = {
        **_revisions(specification["partition"] is not None),
        "steps": {step.name: step.revision for step in steps},
        "method": method.revision,
        **plugins.identity_of(method.name, encoder=specification["setting"]["encoder"]),
    }
    return digest({"specification": specification, "data": data, "revisions": revisions})


def step_specification(
    config: Config, run: Run, step: Step, needs: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that determines a step but the data: what it declares to read, and the same of the
    steps that it needs.

    Args:
        config: the configuration.
        run: a run that needs the step.
        step: the step.
        needs: the specifications of the steps whose results it reads, by stage.
    """
    specified = specification(config, run)
    method, parameters, _ = configured(config, run.method, variants.base(run.dataset))
    encoder = specified["setting"]["encoder"] if "encoder" in step.setting else ""
    own = {"step": step.revision, **plugins.identity_of(method.name, step.function, encoder)}
    return {
        **{part: specified[part] for part in ("dataset", "split", "partition", "seed")},
        "setting": {
            name: value for name, value in specified["setting"].items() if name in step.setting
        },
        "step": step.name,
        "parameters": step.parameters.of(parameters).model_dump(mode="json"),
        "needs": {stage: needs[stage] for stage in step.needs},
        "revisions": {**_revisions(run.clients is not None), **own},
    }


def step_key(config: Config, run: Run, specified: Mapping[str, Any]) -> str:
    """The content key of a step's result, from its specification."""
    return digest({"specification": specified, "data": data_fingerprint(config, run.dataset)})


def graph_key(config: Config, dataset: str) -> str:
    """The content key of a prepared graph and of its statistics.

    The code that reads raw files is not in it: the fingerprint of what it must yield is known, or
    else a revision is in it.
    """
    return digest({"data": data_fingerprint(config, dataset)})


def split_key(config: Config, dataset: str, seed: int) -> str:
    """The content key of a split."""
    data, how = data_fingerprint(config, dataset), entry(config, "datasets", dataset)["split"]
    shares = split_shares(config, dataset)
    options = shares if how == "random" else {**shares, "method": how}
    return digest({"data": data, "split": options, "seed": seed, "revision": split.REVISION})


def partition_key(config: Config, spec: PartitionSpec) -> str:
    """The content key of a partition and of its statistics."""
    options = {
        "clients": spec.clients,
        "seed": spec.seed,
        **partition_options(config, spec.dataset),
    }
    revisions = {name: module.REVISION for name, module in _DIVIDING.items()}
    return digest(
        {
            "data": data_fingerprint(config, spec.dataset),
            "partition": options,
            "revisions": revisions,
        }
    )


def _revisions(partitioned: bool) -> dict[str, int]:
    """Revisions of what every run or step is computed with."""
    modules = {**_COMPUTING, **(_DIVIDING if partitioned else {})}
    return {name: module.REVISION for name, module in modules.items()}
