"""Golden results: what every method and step computes on a tiny graph, with the revisions that it
was computed at.

``python tests/golden/golden_results.py`` writes the results anew.  It refuses where numbers have
moved and no revision has: raise the ``revision`` of the step or method in ``feddep/methods/``, or
``REVISION`` of split, partition, scaling or training.  What another machine has computed at the
same revisions stays, as the last bits of numbers are a machine's own.
"""

import dataclasses
import hashlib
import json
import platform
import sys
from pathlib import Path
from typing import Any

import torch

from feddep import training
from feddep.datasets.synthetic import planted_partition
from feddep.graph import partition, scaling, split
from feddep.graph.partition import louvain
from feddep.graph.split import random_split
from feddep.methods import registry
from feddep.methods.method import StepResult, run_steps
from feddep.training.config import TrainingConfig
from feddep.training.summary import summary
from feddep.training.task import Task

FILE = Path(__file__).with_name("golden.json")
_SGD = {
    "optimizer": "sgd",
    "learning_rate": 0.5,
    "batch_size": 16,
    "fanout": 3,
    "rounds": 3,
    "hidden_channels": 16,
    "dropout": 0.2,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "sgd": _SGD,
    "adam": {
        **{
            "optimizer": "adam",
            "learning_rate": 0.01,
            "weight_decay": 0.001,
            "batch_size": 8,
            "fanout": 2,
        },
        **{"rounds": 2, "local_epochs": 2, "layers": 3, "hidden_channels": 8, "dropout": 0.5},
    },
    "full": {
        **{
            "optimizer": "adam",
            "optimizer_state": "kept",
            "learning_rate": 0.01,
            "weight_decay": 0.0005,
            "full_batch": True,
        },
        **{
            "rounds": 3,
            "local_epochs": 3,
            "evaluation": "owners",
            "encoder": "gcn",
            "hidden_channels": 16,
        },
    },
}
MENDED = [
    "fedsage_plus",
    "fedsage_plus_shared",
    "feddep",
    "feddep_wo_dgen",
    "feddep_wo_proto",
    "feddep_oracle",
]
"""Methods that read other inputs in full batches, in the setting ``full``."""
_SMALL = {
    **{"prototypes": 3, "embedding": 8, "pretraining_epochs": 3},
    **{"generator_local_epochs": 3, "generator_federated_epochs": 3, "generator_width": 16},
}
_LITERAL = {"fused": "paper", "hidden_from": "validation", "scale": "paper"}
_AUTHORS = {"fused": "authors", "hidden_from": "all", "scale": "authors"}
_ADAM = {"generator_optimizer": "adam", "generator_learning_rate": 0.01, "generator_epochs": 10}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("feddep", _AUTHORS),
    ("feddep", {"clustering": "dec", "pretraining_optimizer": "sgd"}),
    ("feddep", {"encoder": "federated", "inference": "generated"}),
    ("feddep", {**_AUTHORS, **_ADAM, "bernoulli_rate": 0.5, "slots": "all"}),
    ("feddep", {"initial": "uniform", "depth": 0, "cross_weight": 0.0}),
    ("feddep", {"prototypes": None, "task_weight": 0.0, "depth": 3}),
    ("feddep", {**_AUTHORS, "count_bias": 1.0}),
    ("feddep_joint", _AUTHORS),
    ("feddep_wo_proto", _AUTHORS),
    ("feddep_oracle", {"encoder": "federated", "inference": "generated"}),
    (
        "fedsage_plus",
        {
            "hidden_from": "validation",
            "generator_batch": 4096,
            "scale": "authors",
            "cross_weight": 3.0,
        },
    ),
    ("fedgsl", {"edges": 3, "share": 0.5, "refresh": 1}),
    ("fedgraph", {"episodes": 0}),
    ("fedgta", {"moments": "origin", "threshold": 0.0}),
    ("fedpub", {"regularizers": "released", "tau": 0.0}),
    ("fedpub", {"compared": "embeddings"}),
    ("fedaux", {"masks": True, "sigma": 10.0}),
    ("fgssl", {"denominator": "all"}),
    ("fedtgp", {"prediction": "classifier", "margin": "released"}),
    ("gcfl_plus", {"shared": "hidden", "epsilon1": 100.0, "after": 0, "sequence": 1}),
    ("fedavg_oracle", {"hops": 1}),
    ("answers_bayes", {"likelihood": "plain", "labels": True}),
    ("answers_bayes", {"prior_count": 20.0}),
    ("answers_propagation", {"labels": True, "epsilon": None}),
    ("feddc", {"correction": "openfgl"}),
    ("fedproto", {"mean": "openfgl"}),
    ("vertical_gin", {"decoder": "gru", "degree": 3}),
    ("vertical_mlp", {"encoder_layers": 2, "decoder_layers": 1}),
    ("vfgnn", {"aggregation": "gcn", "weights": "frozen"}),
    ("gap", {"release": "one_shot", "bounding": "both", "degree": 3}),
    ("vesper_gin", {"weights": "detached", "bounding": "receiver", "degree": 3}),
    ("vesper_gin", {"weights": "dpsgd", "bounding": "none"}),
    ("vesper_gin", {"epsilon": 32.0, "delta": 0.001, "accountant": "no_amplification"}),
    ("vesper_gcn", {"weights": "frozen", "release": "one_shot", "encoder_epochs": 1}),
    ("vesper_gcn", {"weights": "detached", "degree_ratio": 5.0}),
]
"""Methods with parameters under which other code runs than by default."""


def cases() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Method, setting and parameters of every case, by its name; some methods refuse Adam."""
    listed = [(name, setting, {}) for name in registry.built_in() for setting in ("sgd", "adam")]
    for name in ("scaffold", "fednova"):
        listed.remove((name, "adam", {}))
    listed += [(name, "sgd", changes) for name, changes in VARIANTS]
    listed += [(name, "full", {}) for name in MENDED]
    found = {}
    for name, setting, changes in listed:
        fields = registry.find(name).parameters.model_fields
        small = {key: value for key, value in _SMALL.items() if key in fields}
        if "prototypes" in fields and setting != "full":  # where a GCN has no layers of the paper
            small |= _LITERAL
        if name == "locsage_plus":
            small["generator_federated_epochs"] = 0
        label = ",".join([name, setting, *(f"{key}={value}" for key, value in changes.items())])
        found[label] = (name, setting, {**small, **changes})
    return found


def compute(name: str, setting: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Revisions, tensors of the steps and result of a case."""
    torch.set_num_threads(1)
    graph = planted_partition(160, 4, 12, 48, 5.0, 1.5, 6, 0.6, 0)
    method = registry.find(name)
    given = method.parameters(**parameters)
    owners = louvain(graph, 3, 0) if method.partitioned else None
    shares = random_split(graph.num_nodes, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
    full = {} if method.mini_batch else {"encoder": "gcn", "full_batch": True}
    task = Task("golden", graph, shares, owners, TrainingConfig(**SETTINGS[setting], **full), 0)
    steps = method.steps(given)
    results = run_steps(task, given, steps)
    found = summary(method.run(dataclasses.replace(task, step_results=results), given))
    # The latter two follow from the rest.
    communication, _, _ = (found.pop(name) for name in ("communication", "stalled", "macro_f1"))
    return {
        "revisions": {
            **{
                "split": split.REVISION,
                "partition": partition.REVISION,
                "scaling": scaling.REVISION,
            },
            **{"training": training.REVISION, "method": method.revision},
            **{step.name: step.revision for step in steps},
        },
        "steps": {stage: _tensors(result) for stage, result in results.items()},
        "result": {**found, "sent": _sent(communication)},
    }


def _sent(communication: list[dict[str, Any]]) -> dict[str, str]:
    """What each client sent and received, by direction and kind."""
    return {
        f"client {row['client']} {row['direction']} "
        f"{row['kind']}": f"{row['messages']} messages, {row['bytes']} bytes"
        for row in communication
    }


def _tensors(result: StepResult) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "shape": list(tensor.shape),
            "sum": float(tensor.double().sum()),
            "sha256": hashlib.sha256(
                tensor.detach().cpu().contiguous().numpy().tobytes()
            ).hexdigest()[:16],
        }
        for name, tensor in sorted(result.tensors.items())
    }


def machine() -> str:
    """Where numbers are the same to the last bit: processor and PyTorch."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    models = {
        line.partition(":")[2].strip()
        for line in lines
        if line.startswith(("model name", "cpu family", "model\t"))
    }
    return (
        f"{platform.machine()} {' '.join(sorted(models))} "
        f"{torch.backends.cpu.get_cpu_capability()} torch {torch.__version__}"
    )


def write() -> None:
    """Compute all cases and write them, unless numbers have moved without a revision.

    Raises:
        SystemExit: naming the first case that has.
    """
    here = machine()
    before = json.loads(FILE.read_text()) if FILE.is_file() else {"machine": here, "cases": {}}
    now = {}
    for label, case in cases().items():
        old, found = before["cases"].get(label), compute(*case)
        if old is None or old["revisions"] != found["revisions"]:
            now[label] = found if before["machine"] == here else {**found, "machine": here}
        elif made_at(before, label) == here and numbers(old) != found:
            sys.exit(
                f"the numbers of {label} have moved, and no revision has: raise the one of what "
                "you changed"
            )
        else:
            now[label] = old
    FILE.write_text(json.dumps({**before, "cases": now}, indent=1, sort_keys=True) + "\n")


def made_at(golden: dict[str, Any], label: str) -> str:
    """The machine that a case was computed on: the file's, or its own."""
    return golden["cases"][label].get("machine", golden["machine"])


def numbers(case: dict[str, Any]) -> dict[str, Any]:
    """A case as :func:`compute` gives it."""
    return {name: value for name, value in case.items() if name != "machine"}


if __name__ == "__main__":
    write()
