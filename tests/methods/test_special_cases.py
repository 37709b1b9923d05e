"""Where its own term vanishes a method is a simpler one, to the last bit; and the settings that
methods refuse.
"""

from typing import Any

import pytest

from feddep.methods import registry
from feddep.utils.errors import ConfigError
from method_tasks import ROUNDS, run_on, task_of

GCN = {"encoder": "gcn", "full_batch": True}
FIELD = {**GCN, "evaluation": "owners", "optimizer_state": "kept"}
ALONE = {"clients": 1}
FREE = {"epsilon": None, "clip": 1000.0}
UNMENDED = {"bernoulli_rate": 0.0, "fused": "authors", "embedding": 6, "pretraining_epochs": 2}
PYG = "torch_geometric.nn.models.GAT"
SIMPLER: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("adafgl", {"federated_share": 1.0}, "fedavg", {**FIELD, **ALONE}),
    ("feddep", UNMENDED, "fedavg", FIELD),
    ("feddep", UNMENDED, "fedavg", {**FIELD, "encoder": "sage"}),
    ("feddep", UNMENDED, "fedavg", {**FIELD, "encoder": "mlp"}),
    ("feddep", UNMENDED, "fedavg", {**FIELD, "encoder": "gat"}),
    ("feddep_joint", UNMENDED, "fedavg", {}),
    ("fedavg_finetuned", {"tuning_rounds": 0}, "fedavg", FIELD),
    ("fedavg_finetuned", {"tuning_rounds": ROUNDS}, "local", FIELD),
    ("fedgcn_noised", FREE, "fedgcn", {}),
    ("fedgcn_noised", FREE, "fedgcn", GCN),
    ("fedgraph", {}, "fedavg", {**FIELD, **ALONE}),
    ("fedgraph", {}, "fedavg", {**FIELD, **ALONE, "encoder": "sage"}),
    ("fedgsl", {"share": 0.0}, "fedavg", {}),
    ("fedgsl", {"share": 0.7}, "fedavg", ALONE),
    ("fedgta", {"threshold": 1.0}, "local", FIELD),
    ("fedgta", {"threshold": 1.0}, "local", {"evaluation": "owners"}),
    ("fednova", {}, "fedavg", GCN),
    ("fednova", {}, "fedavg", ALONE),
    ("fedper", {}, "local", {**FIELD, "layers": 1}),
    ("fedprox", {"mu": 0.0}, "fedavg", {}),
    ("fedproto", {"prototype_weight": 0.0}, "local", FIELD),
    ("fedspray", {"soft_weight": 0.0}, "local", FIELD),
    ("fedtgp", {"prototype_weight": 0.0, "prediction": "classifier"}, "local", FIELD),
    ("fedtad", {"repetitions": 0}, "fedavg", GCN),
    ("fgssl", {"contrast_weight": 0.0, "distillation_weight": 0.0}, "fedavg", GCN),
    ("gcfl_plus", {}, "fedavg", FIELD),
    ("gcfl_plus", {"epsilon1": 0.0, "after": 0}, "fedavg", FIELD),
    ("gcfl_plus", {}, "fedavg", {**FIELD, "encoder": "mlp"}),
    ("moon", {"mu": 0.0}, "fedavg", FIELD),
    ("s2fgl", {"repository_weight": 0.0, "alignment_weight": 0.0}, "fedavg", FIELD),
    ("scaffold", {}, "fedavg", ALONE),
    ("vesper_gcn", {"theta": 0.0, "min_degree": 0}, "vertical_gcn", {}),
    ("vesper_gin", {"theta": 0.0}, "vertical_gin", {}),
]
"""A method with parameters, the simpler one, and a setting."""


@pytest.mark.parametrize(("name", "parameters", "simpler", "setting"), SIMPLER)
def test_without_its_own_term_it_is_a_simpler_method(
    name: str, parameters: dict[str, Any], simpler: str, setting: dict[str, Any]
):
    task = task_of(simpler, **setting)
    found, expected = run_on(task, name, **parameters).history, run_on(task, simpler).history
    assert found.losses == expected.losses
    assert found.before == expected.before
    assert found.after == expected.after


def test_what_a_search_tries_as_fedavg_is_fedavg():
    for method in registry.built_in().values():
        if given := method.as_fedavg:
            assert any(
                (name, simpler) == (method.name, "fedavg") and given.items() <= parameters.items()
                for name, parameters, simpler, _ in SIMPLER
            ), method.name


@pytest.mark.parametrize(
    ("name", "setting", "key"),
    [
        ("fedaux", {**GCN, "full_batch": False}, "full_batch"),
        ("fedaux", {**GCN, "layers": 1}, "layers"),
        ("feddep", {"encoder": PYG}, "encoder"),
        ("feddep_joint", {**FIELD, "encoder": "sage"}, "full_batch"),
        ("feddep_wo_nfdp", {**FIELD, "encoder": "sage"}, "full_batch"),
        ("fedgnn", {"encoder": "gcn"}, "encoder"),
        ("fedgnn", {"encoder": PYG}, "encoder"),
        ("fedgsl", {"layers": 1}, "layers"),
        ("fedgsl", {"encoder": "gcn"}, "full_batch"),
        ("fedgsl", {**GCN, "encoder": "mlp"}, "encoder"),
        ("fednova", {"optimizer": "adam"}, "optimizer"),
        ("fedproto", {**FIELD, "full_batch": False}, "full_batch"),
        ("fgssl", {**GCN, "layers": 1}, "layers"),
        ("gap_authors", {"batch_size": 1}, "batch_size"),
        ("fedproto", {**FIELD, "layers": 1}, "layers"),
        ("fedsage_plus", {"encoder": PYG}, "encoder"),
        ("moon", {**FIELD, "full_batch": False}, "full_batch"),
        ("moon", {**FIELD, "layers": 1}, "layers"),
        ("scaffold", {"optimizer": "adam"}, "optimizer"),
        ("vesper_gin", {"batch_size": 145}, "batch_size"),  # of 144 training nodes
    ],
)
def test_a_setting_that_a_method_refuses(name: str, setting: dict[str, Any], key: str):
    with pytest.raises(ConfigError, match=key):
        run_on(task_of(name, **setting), name)
