"""Embedding oracle: FedDEP's classifier on subgraphs that are mended with the truth instead of what DGen generates.

    z̄_v = mean { z_u : u a neighbour of v that another client owns },   0 where v has none

and z_u is what u's own client has computed for it: the embedding that DGen would ideally generate.  All else is FedDEP.  So
this is what knowing the missing neighbours' embeddings is worth to this classifier.  A generator of deep neighbours that
does better does so by something else, such as its noise.

With ``encoder`` ``own``, as in the paper, z_u comes from the encoder of the client that owns u, and the embeddings of two
clients live in unrelated bases.  With ``common`` all have one basis.  The difference is what the bases cost.

It is an oracle and no protocol.  The experimenter, who alone knows the cross-client edges, looks the embeddings up; handing
them over is not in the communication log, which counts the messages of a common encoder's pretraining and of the classifier.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from feddep.graph.halo import missing_neighbours
from feddep.methods.feddep import FedDEPParameters, classifier
from feddep.methods.method import StepResult
from feddep.nn.sparse import SparseMatrix
from feddep.training.task import RunResult, Task


def run(task: Task, parameters: FedDEPParameters, steps: Mapping[str, StepResult]) -> RunResult:
    """Train FedDEP's classifier on the true embeddings."""
    return classifier.train_classifier(task, parameters, mend_truly(task, steps["pretrain"].of_clients("embeddings")))


def mend_truly(task: Task, embeddings: Sequence[Tensor]) -> list[Tensor]:
    """z̄_v of each client's nodes, shape (n_i, d_z), from the embeddings Z_i of each client, shape (n_i, d_z)."""
    partition, device = task.partition, task.device
    assert partition is not None  # without one there are no clients that could have embedded anything
    owned = [torch.from_numpy(partition.nodes(i)).to(device) for i in range(partition.num_clients)]
    z = torch.cat(list(embeddings))[torch.argsort(torch.cat(owned))]
    mended = SparseMatrix.from_scipy(missing_neighbours(task.graph, partition), device) @ z
    return [mended[nodes] for nodes in owned]
