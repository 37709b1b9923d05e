"""FedDEP whose generators all begin alive: DGen's number of missing neighbours starts around 1, as FedSage+'s does here.

DGen's number is the ReLU of a linear map (FedDEP, Section 3.1).  With PyTorch's initial weights, which the authors' code has and
:mod:`feddep.frameworks.feddep` too, that is 0 for every node of some clients.  Then nothing is generated, no term of the loss
has a gradient, and nothing is ever learned.  Neither paper nor code says that this was meant.  Here the bias is 1 instead of
random; all else, the other weights included, is FedDEP.

Assumes: prototypes shared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from feddep import mending, seeding
from feddep.federation.ledger import merged
from feddep.frameworks import feddep
from feddep.generation import Generator, nearest_in
from feddep.nn.dgen import DGen
from feddep.problem import Outcome, Problem
from feddep.steps import Made, Step, make_all

TITLE = "FedDEP, alive"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters(feddep.Parameters):
    """Those of FedDEP."""


def steps(parameters: Parameters) -> Sequence[Step]:
    """Those of FedDEP, but for what generators start from."""
    return [replace(step, make=generate) if step.stage == "generator" else step for step in feddep.steps(parameters)]


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedDEP from top to bottom."""
    made = make_all(problem, parameters, steps(parameters))
    outcome = feddep.train_classifier(problem, parameters, made["generator"].of_clients("mended"))
    return Outcome(outcome.histories, merged(*(step.ledger for step in made.values()), outcome.ledger))


def generate(problem: Problem, parameters: Parameters, made: Mapping[str, Made]) -> Made:
    """Mend every client's subgraph as :func:`feddep.mending.generate` does, with a DGen that is alive."""
    shared, targets = made["prototypes"].of_clients("prototypes"), made["prototypes"].of_clients("targets")
    seed, device = problem.seed, problem.device
    mended = []
    for i, client in enumerate(problem.subgraphs()):
        graph, split = client
        search = nearest_in([others for j, others in enumerate(shared) if j != i])
        impaired = mending.impair_client(problem, parameters, i, client)
        generator = Generator(new_dgen(problem, parameters, i), parameters.generation, seed, f"client{i}", device)
        classifier = mending.new_classifier(problem, parameters, f"client{i}")
        losses = generator.train(classifier, impaired, split, targets[i], search)
        mended.append((*generator.mend(graph), torch.tensor(losses)))
    return Made(mending.named(mended))


def new_dgen(problem: Problem, parameters: Parameters, number: int) -> DGen:
    """FedDEP's initial DGen of client ``number``, but for the bias of the number of missing neighbours, which is 1."""
    setting = problem.setting
    sizes = (problem.graph.num_features, parameters.embedding, parameters.max_generated, setting.hidden)
    dgen = DGen(*sizes, setting.dropout)
    weights = seeding.derive_seed(problem.seed, f"client{number}", "generator", "weights")
    dgen.reset_parameters(torch.Generator().manual_seed(weights))
    nn.init.ones_(dgen.count.bias)
    return dgen
