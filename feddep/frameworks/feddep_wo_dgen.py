"""FedDEP without deep neighbour generation (FedDEP, Section 4.1 (8), "FedDEP w/o DGen").

The paper says no more than "without deep neighbor generation", keeps Proto and NFDP, and concludes from this row and
FedSage's "the necessity of generating multi-hop cross-subgraph neighbors" (Section 4.2).  Two readings:

* ``shallow``, the default: neighbours are generated, but not deep.  Embeddings, and so prototypes and generated neighbours,
  hold a node's own features only (L = 0); all else is FedDEP.
* ``unmended``: nothing is generated.  Prototypes are of no use then and none are shared; what is left is FedAvg of the
  embedding-fused classifier with z̄ = 0.  In the authors' layout that is FedAvg itself, which has its own row.

Assumes: prototypes shared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from feddep.frameworks import feddep
from feddep.problem import Outcome, Problem
from feddep.steps import Step

TITLE = "FedDEP w/o DGen"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters(feddep.Parameters):
    """Those of FedDEP; ``depth`` belongs to the reading.

    Attributes:
        reading: ``shallow`` or ``unmended``.
    """

    depth: int = 0
    reading: Literal["shallow", "unmended"] = "shallow"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: as for FedDEP, and where ``depth`` is not 0.
        """
        super().__post_init__()
        if self.depth:
            raise ValueError("depth must be 0 without deep neighbours")


def steps(parameters: Parameters) -> Sequence[Step]:
    """Those of FedDEP, or none."""
    return feddep.steps(parameters) if parameters.reading == "shallow" else ()


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedDEP with neighbours of one hop, or with none."""
    if parameters.reading == "shallow":
        return feddep.run(problem, parameters)
    mended = [torch.zeros(graph.num_nodes, parameters.embedding) for graph, _ in problem.subgraphs()]
    return feddep.train_classifier(problem, parameters, mended)
