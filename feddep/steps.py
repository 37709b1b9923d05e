"""Steps: what a framework computes before its classifier is trained, each of them a stage of the DAG with a cache of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from feddep.problem import Problem


@dataclass(frozen=True, eq=False)
class Made:
    """What a step yields.

    Attributes:
        tensors: by name, such as ``client0.embeddings``.  All clients' are together: whoever reads another client's has to
            send it across the border first.
        ledger: what crossed the clients' borders meanwhile (rows of :meth:`feddep.federation.ledger.Ledger.rows`).
    """

    tensors: dict[str, Tensor]
    ledger: list[dict[str, Any]] = field(default_factory=list)

    def of_clients(self, name: str) -> list[Tensor]:
        """The tensors ``client0.NAME``, ``client1.NAME`` … in the order of clients."""
        found: list[Tensor] = []
        while (key := f"client{len(found)}.{name}") in self.tensors:
            found.append(self.tensors[key])
        return found


def by_client(**tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    """Tensors under the names that :meth:`Made.of_clients` looks for, from a sequence of one a client for each name."""
    return {f"client{i}.{name}": tensor for name, sequence in tensors.items() for i, tensor in enumerate(sequence)}


@dataclass(frozen=True)
class Step:
    """A function and what its result depends on.

    Attributes:
        stage: the stage of the DAG that it belongs to: ``pretrain``, ``prototypes`` or ``generator``.
        make: from the run, the framework's parameters and the results of the stages in ``needs`` to the step's result.
            The code that counts for the cache is that of its module and of all that it imports.
        uses: names of the parameters that it reads, those of the steps before it not included.
        needs: stages whose results it reads.
    """

    stage: str
    make: Callable[[Problem, Any, Mapping[str, Made]], Made]
    uses: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def make_all(problem: Problem, parameters: Any, steps: Sequence[Step]) -> dict[str, Made]:
    """The result of each step by its stage: as it was handed in with the problem, or computed now."""
    made: dict[str, Made] = {}
    for step in steps:
        given = problem.made.get(step.stage)
        made[step.stage] = step.make(problem, parameters, made) if given is None else given
    return made
