"""Embedding oracle: FedDEP's classifier on subgraphs that are mended with the truth instead of what DGen generates.

    z̄_v = mean { z_u : u a neighbour of v that another client owns },   0 where v has none

and z_u is what u's own client has computed for it: the embedding that DGen would ideally generate.  All else is FedDEP.  So
this is what knowing the missing neighbours' embeddings is worth to this classifier.  A generator of deep neighbours that
does better does so by something else, such as its noise.

With ``encoder`` ``own``, as in the paper, z_u comes from the encoder of the client that owns u, and the embeddings of two
clients live in unrelated bases.  With ``common`` all have one basis.  The difference is what the bases cost.

It is an oracle and no protocol.  The experimenter, who alone knows the cross-client edges, looks the embeddings up; handing
them over is not in the ledger, which counts the messages of a common encoder's pretraining and of the classifier.

Assumes: oracle.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from feddep import pretraining
from feddep.federation.ledger import merged
from feddep.frameworks import feddep
from feddep.halo import missing_neighbours
from feddep.nn.sparse import SparseMatrix
from feddep.problem import Outcome, Problem
from feddep.steps import Step, make_all

TITLE = "Embedding oracle"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters(feddep.Parameters):
    """Those of FedDEP; what prototypes and DGen alone read is not used.

    With ``inference`` ``generated`` the global graph's nodes have the true z̄_v when the classifier is tested.
    """


def steps(parameters: Parameters) -> Sequence[Step]:
    """Pretraining is FedDEP's; nothing is generated."""
    return (Step("pretrain", pretraining.embed, pretraining.USES),)


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedDEP without errors of its generators."""
    made = make_all(problem, parameters, steps(parameters))
    mended = mend_truly(problem, made["pretrain"].of_clients("embeddings"))
    outcome = feddep.train_classifier(problem, parameters, mended)
    return Outcome(outcome.histories, merged(*(step.ledger for step in made.values()), outcome.ledger))


def mend_truly(problem: Problem, embeddings: Sequence[Tensor]) -> list[Tensor]:
    """z̄_v of each client's nodes, shape (n_i, d_z).

    Args:
        problem: the run.
        embeddings: Z_i of each client, shape (n_i, d_z).
    """
    partition, device = problem.partition, problem.device
    assert partition is not None  # without one there are no clients that could have embedded anything
    owned = [torch.from_numpy(partition.nodes(i)).to(device) for i in range(partition.num_clients)]
    z = torch.cat(list(embeddings))[torch.argsort(torch.cat(owned))]
    mended = SparseMatrix.from_scipy(missing_neighbours(problem.graph, partition), device) @ z
    return [mended[nodes] for nodes in owned]
