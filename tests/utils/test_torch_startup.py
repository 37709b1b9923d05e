"""A process makes and uses optimisers without loading PyTorch's compiler."""

import subprocess
import sys

import pytest

STEP = """
parameter = torch.nn.Parameter(torch.ones(3))
optimizer = OPTIMIZERS[{name!r}]([parameter], lr=0.1)
optimizer.zero_grad()
(parameter * torch.arange(3)).sum().backward()
optimizer.step()
print("torch._dynamo" in sys.modules, parameter.tolist())
"""


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_optimisers_do_without_the_compiler_and_step_the_same(name: str) -> None:
    imports = "import sys, torch\nfrom feddep.training.learner import OPTIMIZERS\n"
    startup = "from feddep.utils.torch_startup import leave_out_compiler\nleave_out_compiler()\nleave_out_compiler()\n"
    plain, spared = (_printed(imports + before + STEP.format(name=name)) for before in ("", startup))
    assert plain.startswith("True ")  # without it they do: a PyTorch of which this fails no longer needs it
    assert spared == plain.replace("True", "False")


def test_a_differentiable_optimiser_stays_one() -> None:
    program = """
import torch
from feddep.utils.torch_startup import leave_out_compiler
leave_out_compiler()
parameter = torch.ones(3, requires_grad=True).clone()
parameter.retain_grad()
optimizer = torch.optim.SGD([parameter], lr=0.1, differentiable=True)
parameter.square().sum().backward(create_graph=True)
optimizer.step()
print(parameter.grad_fn.name())
"""
    assert _printed(program) == "AddBackward0\n"


def _printed(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
