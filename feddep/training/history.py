"""The history of a training: counts of each round, and the weights at the best of them."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from feddep.training.config import Evaluation
from feddep.training.divergence import check_finite
from feddep.training.evaluation import (
    MOMENTS,
    Counts,
    GlobalAccuracy,
    Judged,
    Loss,
    mean_losses,
)


@dataclass
class History:
    """Counts of a training, round by round.

    Attributes:
        evaluation: who is judged.
        together: whether one round is chosen for all clients, or one for each.
        losses: of each client, or of one model that is trained on its own.
        before: counts with the models that clients receive at the end of the round.
        after: counts with each client's own model at the end of the round's local steps, before the
            server aggregates.
        on_graph: of each model that is evaluated on the global graph.
        seconds: time from the beginning to the last round, measured by the clock.
        best_weights: of each model whose weights are kept, at its best round.
    """

    evaluation: Evaluation = "global"
    together: bool = True
    losses: list[Sequence[Loss]] = field(default_factory=list)
    before: list[Counts] = field(default_factory=list)
    after: list[Counts] = field(default_factory=list)
    on_graph: list[Sequence[GlobalAccuracy]] = field(default_factory=list)
    seconds: float = 0.0
    best_weights: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    _best: dict[int, float] = field(default_factory=dict, repr=False)
    _begun: float = field(default_factory=time.perf_counter, repr=False, compare=False)

    def keep(self, models: Sequence[nn.Module], losses: Sequence[Loss], counts: Counts) -> None:
        """Keep the weights of each model that is better on validation nodes than it was in all
        rounds before.

        Args:
            models: one that is judged, or one a client where each chooses its round; none where no
                weights are kept.
            losses: of the round.
            counts: of the moment whose validation chooses.

        Raises:
            DivergenceError: if a loss or a weight is not a finite number.
        """
        for i, loss in enumerate(mean_losses(losses, self.together)):
            weights = models[i].state_dict() if models else {}
            own = losses if self.together else [losses[i]]
            known = any(nodes for nodes, _ in own)
            check_finite("the model", loss if known else 0.0, weights.values())
            validation = counts.validations(self.together)[i]
            if weights and not validation <= self._best.get(i, -math.inf):
                self._best[i] = validation
                self.best_weights[i] = {
                    name: tensor.detach().cpu().clone() for name, tensor in weights.items()
                }

    def record(
        self,
        losses: Sequence[Loss],
        before: Counts,
        after: Counts,
        on_graph: Sequence[GlobalAccuracy] = (),
    ) -> None:
        """Append a round."""
        self.losses.append(losses)
        self.before.append(before)
        self.after.append(after)
        self.on_graph.append(on_graph or [GlobalAccuracy()])
        self.seconds = time.perf_counter() - self._begun

    @property
    def judged(self) -> list[Judged]:
        """The history as its evaluation reads it; where owners judge, before and after the local
        steps, each at its own best round.
        """
        if self.evaluation == "owners":
            return [Judged(self, moment) for moment in MOMENTS]
        return [Judged(self, "after" if self.evaluation == "local_after" else "before")]
