"""AdaFGL: FedAvg, and then each client alone, taught by the global model (Li et al., ICDE 2024,
with the authors' code).

Step 1 is FedAvg for the first of the rounds.  Step 2 takes the others, with the setting's local
epochs in each; it sends nothing. With predictions q_i of the global model on the client's n nodes
and their similarity R_ij = q_i·q_j / (‖q_i‖ ‖q_j‖), R_ii = 0:

    Ã: α A + (1 − α) R, normalised as in a GCN,  S = [X, ÃX, …, Ã^K X]
    homophilous branch:    Z = MLP(S),  loss CE(Z) + MSE(softmax Z, Q),  prediction (softmax Z + Q)
        / 2
    heterophilous branch:  MLP(X), MLP(S) and H' of H = MLP(S),  the three cross-entropies,  the
        mean of the three softmaxes
                           P = sign-scaled β R + (1 − β) R(softmax H),  H' = (softmax(P⁺ H) −
                           softmax(P⁻ H) + H) / 2

P is centred, and scaled to [−1, 1].  The homophily score h is the accuracy of label propagation
from one half of the training nodes on the other; the prediction is h times that of the homophilous
branch plus 1 − h times the other's.  R is dense: a client needs memory for a few n × n matrices.

Slips of the authors' code: the branch is switched by a threshold; Q passes a second softmax where
it is similarity or prediction; of pairs below the mean similarity those nearest to it, not the
least similar ones, get the most negative sign.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss, nll_loss, normalize, one_hot

from feddep.methods.basic import fedavg
from feddep.methods.distilled import AdaFGLParameters
from feddep.methods.personalised.finetuned import TuningClient
from feddep.nn.dropout import drop
from feddep.nn.linear import Linear
from feddep.training.divergence import check_finite
from feddep.training.learner import new_optimizer
from feddep.training.task import RunResult, Task


class View(NamedTuple):
    """Inputs of step 2: features, predictions Q of step 1, R and Ã, both dense."""

    x: Any
    q: Tensor
    relation: Tensor
    smoothing: Tensor


def similarity(q: Tensor) -> Tensor:
    """R, shape (n, n), from predictions, (n, C): cosines, and 0 on the diagonal."""
    unit = normalize(q)
    return without_diagonal(unit @ unit.T)


def without_diagonal(matrix: Tensor) -> Tensor:
    """The matrix with zeros on its diagonal."""
    return matrix * (1 - torch.eye(len(matrix), device=matrix.device))


def with_loops(matrix: Tensor) -> Tensor:
    """D̂^(−1/2) (M + I) D̂^(−1/2), where D̂ has the row sums of M + I."""
    with_self_loops = matrix + torch.eye(len(matrix), device=matrix.device)
    scale = with_self_loops.sum(dim=1).rsqrt()
    return scale[:, None] * with_self_loops * scale


def edges(adjacency: Any) -> Tensor:
    """A without self-loops, dense, from any matrix that has an entry for each edge."""
    dense = torch.zeros(adjacency.shape)
    dense[adjacency.entries()] = 1
    return without_diagonal(dense)


def signed(relation: Tensor) -> Tensor:
    """P: centred, scaled to 1 at the largest and −1 at a similarity of 0; 1 on the diagonal."""
    mean = relation.mean()
    centred = relation - mean
    scaled = centred / torch.where(centred > 0, relation.max() - mean, mean).clamp(min=1e-9)
    return without_diagonal(scaled) + torch.eye(len(relation), device=relation.device)


def sharp_softmax(sums: Tensor) -> Tensor:
    """Softmax of sums over many nodes; what would be below e^−30 is e^−30, as denormal gradients
    take ten times as long.
    """
    return (sums - sums.detach().amax(dim=1, keepdim=True)).clamp(min=-30).softmax(dim=1)


def homophily_score(
    a: Tensor, labels: Tensor, train: Tensor, classes: int, steps: int = 10
) -> float:
    """h: from the first half of the training nodes labels spread, Y ← ½ Ã Y + ½ Y₀; the accuracy on
    the other half.

    Y₀ is uniform on all other nodes, and after each step Y₀ is added on the half that is known
    (authors' code).
    """
    known, asked = train[: len(train) // 2], train[len(train) // 2 :]
    start = torch.full((len(a), classes), 1 / classes, device=a.device)
    start[known] = one_hot(labels[known], classes).float()
    y, spreading = start, with_loops(a)
    for _ in range(steps):
        y = (spreading @ y + start) / 2
        y[known] += start[known]
    return float((y[asked].argmax(dim=1) == labels[asked]).float().mean())


class SmoothedMLP(nn.Module):
    """An MLP of [X, ÃX, …, Ã^K X].  As Ã^k X W_k = Ã^k (X W_k), X stays sparse and nothing of width
    (K + 1) F is held.
    """

    def __init__(
        self, inputs: int, hidden: int, outputs: int, layers: int, hops: int, dropout: float
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, (hops + 1) * hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.rest = nn.ModuleList(
            Linear(hidden, outputs if k == layers - 2 else hidden) for k in range(layers - 1)
        )
        self.activation = nn.PReLU()
        self.dropout = dropout

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw the weights; the first as one map of (K + 1) F inputs (Glorot and Bengio, 2010)."""
        bound = math.sqrt(6 / (self.weight.numel() / len(self.bias) + len(self.bias)))
        nn.init.uniform_(self.weight, -bound, bound, generator=generator)
        for layer in self.rest:
            layer.reset_parameters(generator)  # type: ignore[operator]

    def forward(self, view: View, generator: torch.Generator | None) -> Tensor:
        """Logits, shape (n, C); a generator draws dropout masks."""
        *lower, outputs = (view.x @ self.weight).split(len(self.bias), dim=1)
        for mapped in reversed(lower):
            outputs = view.smoothing @ outputs + mapped
        outputs = outputs + self.bias
        for layer in self.rest:
            outputs = layer(drop(self.activation(outputs), self.dropout, generator))
        return outputs


class AdaFGLModel(nn.Module):
    """The global model and, from step 2 on, both branches.

    Attributes:
        extractor: the classifier of step 1.
        score: weight of the homophilous branch; None in step 1.
    """

    def __init__(self, task: Task, params: AdaFGLParameters) -> None:
        super().__init__()
        self.extractor = task.new_model()
        self.params = params
        self.score: float | None = None
        inputs, hidden, classes, _, dropout = task.model_sizes
        sizes = {
            "homophilous": (2, params.hops),
            "own": (3, 0),
            "smoothed": (3, params.hops),
            "passed": (3, params.hops),
        }
        branches = {
            name: SmoothedMLP(inputs, hidden, classes, *of, dropout) for name, of in sizes.items()
        }
        generator = task.torch_generator("adafgl", "weights")
        for branch in branches.values():
            branch.reset_parameters(generator)
        self.branches = nn.ModuleDict(branches)
        self.to(task.device)
        self.aggregation = self.extractor.aggregation
        self._seen: tuple[Any, View] | None = None

    def forward(self, *arguments: Any) -> Tensor:
        """Step 1 on sampled trees."""
        return self.extractor(*arguments)

    def full(self, x: Any, adjacency: Any, **options: Any) -> Tensor:
        """Logits of step 1, or logarithms of what step 2 predicts, shape (n, C)."""
        if self.score is None:
            return self.extractor.full(x, adjacency, **options)
        return self.predict(self.view(x, adjacency))[0].log()

    @torch.no_grad()
    def view(self, x: Any, adjacency: Any) -> View:
        """Inputs of step 2 on a graph; those of the last one are kept."""
        if self._seen is None or self._seen[0] is not adjacency:
            params, q = self.params, self.extractor.full(x, adjacency).softmax(dim=1)
            relation = similarity(q)
            relation = (relation > params.alike).float() if params.alike else relation
            smoothing = with_loops(
                params.alpha * edges(adjacency).to(q.device) + (1 - params.alpha) * relation
            )
            self._seen = adjacency, View(x, q, relation, smoothing)
        return self._seen[1]

    def predict(
        self, view: View, generator: torch.Generator | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Probabilities, shape (n, C), and the logits of each part of the branches that count."""
        assert self.score is not None
        logits = {
            name: branch(view, generator)
            for name, branch in self.branches.items()
            if (self.score > 0 if name == "homophilous" else self.score < 1)
        }
        mixed = torch.zeros_like(view.q)
        if self.score > 0:
            mixed = self.score * (logits["homophilous"].softmax(dim=1) + view.q) / 2
        if self.score < 1:
            h = logits["passed"]
            relation = self.params.beta * view.relation + (1 - self.params.beta) * similarity(
                h.softmax(dim=1)
            )
            p = signed(relation)
            logits["passed"] = (
                sharp_softmax(p.relu() @ h) - sharp_softmax((-p).relu() @ h) + h
            ) / 2
            mixed = mixed + (1 - self.score) / 3 * sum(
                logits[name].softmax(dim=1) for name in ("own", "smoothed", "passed")
            )
        return mixed.clamp(min=1e-30), logits

    def losses(
        self, logits: dict[str, Tensor], view: View, labels: Tensor, train: Tensor
    ) -> Tensor:
        """The cross-entropies of all parts, and what draws the homophilous branch to Q."""
        loss = torch.stack(
            [cross_entropy(part[train], labels[train]) for part in logits.values()]
        ).sum()
        if "homophilous" not in logits:
            return loss
        z = logits["homophilous"]
        return loss + mse_loss(
            z.softmax(dim=1) if self.params.knowledge == "probabilities" else z, view.q
        )


class AdaFGLClient(TuningClient):
    """A client that trains alone, and sends nothing, after ``federated`` rounds."""

    def __init__(self, *arguments: Any, task: Task, federated: int) -> None:
        """Set up a client; the first arguments are those of
        :class:`feddep.federation.client.Client`.
        """
        super().__init__(*arguments, rounds=federated)
        self.random = task.torch_generator(f"client{self.number}", "adafgl")
        self.dropout = torch.Generator(task.device).manual_seed(self.random.initial_seed())

    def train(self) -> float:
        """Local steps of step 1 or 2; in step 2 the loss is that of the prediction."""
        if self.left > 0:
            return super().train()
        self.left -= 1
        if not self.learner.size:  # it keeps the global model
            return 0.0
        model = self.model
        source = self.evaluator
        train = torch.from_numpy(self.split.train).to(self.evaluator.labels.device)
        view, value = model.view(source.features, source.adjacency), 0.0
        if model.score is None:
            model.extractor.requires_grad_(requires_grad=False)
            self._optimizer = new_optimizer(model.branches, self.setting)
            shuffled = train[torch.randperm(len(train), generator=self.random).to(train.device)]
            score = homophily_score(
                edges(source.adjacency).to(train.device), source.labels, shuffled, view.q.shape[1]
            )
            model.score = (
                score
                if model.params.combination == "mixture"
                else float(score >= model.params.threshold)
            )
        assert self._optimizer is not None
        for _ in range(self.setting.local_epochs):
            self._optimizer.zero_grad()
            mixed, logits = model.predict(view, self.dropout)
            model.losses(logits, view, source.labels, train).backward()
            self._optimizer.step()
            value = float(nll_loss(mixed[train].log(), source.labels[train]).detach())
            check_finite(f"the model of client{self.number}", value, model.parameters())
        return value


def run(task: Task, parameters: AdaFGLParameters, steps: Any = None) -> RunResult:
    """Both steps."""
    federated = round(parameters.federated_share * task.setting.rounds)
    return fedavg.train_on(
        task,
        task.subgraphs(),
        partial(AdaFGLClient, task=task, federated=federated),
        new_model=lambda: AdaFGLModel(task, parameters),
        shared=lambda name: name.startswith("extractor."),
    )
