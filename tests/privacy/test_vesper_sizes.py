"""The noise of the appendix's table: what the paper's account and one guaranteed release take on
graphs of the shape of VESPER's Finance graph.
"""

import re
from typing import Any

import pytest

from feddep.methods import registry
from feddep.methods.vesper.noise_budget import noise_scale
from feddep.training.config import TrainingConfig
from workspace import REPOSITORY

_TEXT = (REPOSITORY / "docs/appendix/vesper_proofs.md").read_text("utf-8")
_TABLE = re.findall(r"^\|([\d,]+)((?:\|[\d.]+){4})\|$", _TEXT.partition("## What size")[2], re.M)
PAPER = "vesper_gin", "gin", {"accountant": "rdp", "degree": 10}
ONCE = "gap", "gap", {"bounding": "none", "release": "one_shot"}


def theta(nodes: int, layers: int, name: str, aggregation: str, options: dict[str, Any]) -> float:
    share, edges = nodes / 1132511, int(nodes * 2447370 / 1132511)
    parameters = registry.find(name).parameters(epsilon=8.0, delta=0.999 / edges, **options)
    setting = TrainingConfig(batch_size=512, rounds=2, layers=layers, dropout=0.0)
    return noise_scale(int(share * 848963), edges, setting, parameters, aggregation)


@pytest.mark.parametrize(("nodes", "printed"), _TABLE)
def test_noise_over_the_size(nodes: str, printed: str) -> None:
    n = int(nodes.replace(",", ""))
    found = [theta(n, layers, *of) for layers in (1, 2) for of in (PAPER, ONCE)]
    assert found == pytest.approx([float(each) for each in printed.split("|")[1:]], rel=8e-3)


def test_every_size_is_there() -> None:
    assert [nodes for nodes, _ in _TABLE] == ["1,132", "11,325", "113,251", "1,132,511"]
