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
from pathlib import Path
from typing import Any

from feddep import training
from feddep.config.entries import Entry
from feddep.config.loading import Config
from feddep.config.models import SplitOptions
from feddep.datasets import own_files, synthetic
from feddep.datasets.public_graphs import REGISTRY
from feddep.graph import noise, partition, partitioners, scaling, split
from feddep.methods import plugins, registry
from feddep.methods.method import Step
from feddep.utils.files import canonical_json
from feddep.utils.parameters import Parameters

_COMPUTING = {"split": split, "scaling": scaling, "training": training}
_DIVIDING = {"partition": partition, "partitioners": partitioners}


def digest(value: Mapping[str, Any]) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a JSON value in its canonical spelling."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]


@cache
def data_fingerprint(config: Config, dataset: Entry) -> str:
    """The identity of a graph, known before it is downloaded.

    The fingerprint of its parsed graph, which the registry names, or the digest of its release
    where that is not known yet (:attr:`feddep.datasets.public_graphs.Dataset.identity`); for a
    graph of one's own the digest of its files (:func:`own_fingerprint`); for a built-in graph the
    digest of its options and of the revision of what generates it.  A configuration reads one's own
    files once.

    Raises:
        DataError: if a graph of one's own is not there.
    """
    if "path" in dataset.options:
        return own_fingerprint(dataset.options["path"])
    if "synthetic" in dataset.options:
        return digest({"synthetic": dataset.options["synthetic"], "revision": synthetic.REVISION})
    return REGISTRY[dataset.name].identity


def own_fingerprint(path: str) -> str:
    """The identity of a graph of one's own: the content of its files, wherever they lie, and the
    revision of what reads them.

    Raises:
        DataError: if they are not there.
    """
    reader = plugins.identity_of(reader=Path(path).suffix[1:])
    files = own_files.checksums(path)
    return digest({"files": files, "revision": own_files.REVISION, **reader})


def specification(
    *,
    dataset: Mapping[str, Any],
    split: SplitOptions,
    partition: Mapping[str, Any] | None,
    seed: int,
    **others: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that determines a run but data and revisions.

    Args:
        dataset: its ``name``, and its options as a key holds them
            (:meth:`feddep.utils.parameters.Parameters.in_key`).
        split: which nodes train, validate and test.
        partition: the number of ``clients``, and the options as a key holds them; None where the
            run is of the whole graph.
        seed: seed of the run.
        others: ``setting``, as a key holds it, and ``method``, its ``name`` with its parameters;
            they may be left out where only inputs are made (:mod:`feddep.experiment.inputs`).
    """
    # The method of a split stands with the dataset, unless it is random: so have recorded keys it.
    how = {} if split.method == "random" else {"split": split.method}
    unseen = {"unseen": True} if split.unseen else {}
    return {
        "dataset": {**dataset, **how},
        "split": {**split.shares(), **unseen},
        "partition": partition,
        **others,
        "seed": seed,
    }


def run_key(specification: Mapping[str, Any], data: str, steps: Sequence[Step]) -> str:
    """The content key of a run of that specification, on data of that fingerprint, with the steps
    of its method.
    """
    method = registry.find(specification["method"]["name"])
    revisions = {
        **_revisions(specification),
        "steps": {step.name: step.revision for step in steps},
        "method": method.revision,
        **plugins.identity_of(method.name, encoder=specification["setting"]["encoder"]),
    }
    return digest({"specification": specification, "data": data, "revisions": revisions})


def step_specification(
    specification: Mapping[str, Any], step: Step, parameters: Parameters, needs: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that determines a step but the data: what it declares to read, and the same of the
    steps that it needs.

    Args:
        specification: of a run that needs the step.
        step: the step.
        parameters: of the run's method.
        needs: the specifications of the steps whose results it reads, by stage.
    """
    setting, method = specification["setting"], specification["method"]["name"]
    encoder = setting["encoder"] if "encoder" in step.setting else ""
    own = {"step": step.revision, **plugins.identity_of(method, step.function, encoder=encoder)}
    return {
        **{part: specification[part] for part in ("dataset", "split", "partition", "seed")},
        "setting": {name: value for name, value in setting.items() if name in step.setting},
        "step": step.name,
        "parameters": step.parameters.of(parameters).model_dump(mode="json"),
        "needs": {stage: needs[stage] for stage in step.needs},
        "revisions": {**_revisions(specification), **own},
    }


def step_key(specification: Mapping[str, Any], data: str) -> str:
    """The content key of a step's result, from its own specification."""
    return digest({"specification": specification, "data": data})


def graph_key(data: str) -> str:
    """The content key of a prepared graph and of its statistics.

    The code that reads raw files is not in it: the fingerprint of what it must yield is known, or
    else a revision is in it.
    """
    return digest({"data": data})


def split_key(specification: Mapping[str, Any], data: str) -> str:
    """The content key of a split."""
    how = specification["dataset"].get("split")
    options = {**specification["split"], **({"method": how} if how else {})}
    return digest(
        {
            **{"data": data, "split": options, "seed": specification["seed"]},
            **{"revision": split.REVISION, **plugins.identity_of(splitter=how or "")},
        }
    )


def partition_key(specification: Mapping[str, Any], data: str) -> str:
    """The content key of a partition and of its statistics."""
    options = {**specification["partition"], "seed": specification["seed"]}
    revisions = _dividing(specification["partition"])
    return digest({"data": data, "partition": options, "revisions": revisions})


def _revisions(specification: Mapping[str, Any]) -> dict[str, Any]:
    """Revisions of what a run or step is computed with."""
    partition, how = specification["partition"], specification["dataset"].get("split", "")
    noisy = "noise" in specification["dataset"] or "unseen" in specification["split"]
    return {
        **{name: module.REVISION for name, module in _COMPUTING.items()},
        **({"noise": noise.REVISION} if noisy else {}),
        **(_dividing(partition) if partition else {}),
        **plugins.identity_of(splitter=how),
    }


def _dividing(partition: Mapping[str, Any]) -> dict[str, Any]:
    """Revisions of what divides a graph; of a plugin's partitioner its identity besides."""
    revisions = {name: module.REVISION for name, module in _DIVIDING.items()}
    return {**revisions, **plugins.identity_of(partitioner=partition["method"])}
