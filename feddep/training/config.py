"""How a classifier is trained: the numbers that a paper's "experimental settings" paragraph
gives.
"""

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from feddep.nn.encoder_names import ADDED, ENCODERS, is_encoder
from feddep.utils.errors import ConfigError
from feddep.utils.parameters import InKey, Parameters, Positive, StepSize, Weight, Width
from feddep.utils.spaces import By, Space, integers, linear, log

Evaluation = Literal["global", "local_before", "local_after", "owners"]
"""Who is judged: the models whose accuracy counts, and by whose validation the round is chosen.

``global``: the shared model, or each client's, on the global graph.  ``local_before`` and
``local_after``: a model a client, each with a round of its own, as the client receives it or at the
end of a round's local steps.  ``owners``: each client's model on its own subgraph, in one round for
all, before or after the local steps, whichever is better on validation nodes.
"""
Metric = Literal["accuracy", "roc_auc"]
"""How a model is judged: by the share of nodes that get their true class, or by the area under the
ROC curve.
"""


def _known(encoder: str) -> str:
    if is_encoder(encoder):
        return encoder
    raise ValueError(
        f"allowed are {', '.join([*ENCODERS, *ADDED])}, and MODULE.CLASS for any model of PyTorch "
        "Geometric"
    )


class TrainingConfig(Parameters):
    """Model and optimisation, the same for every method of a table."""

    optimizer: Literal["sgd", "adam"] = "adam"
    """`sgd` without momentum (FedDEP), or `adam` (FedSage)"""
    optimizer_state: Annotated[Literal["fresh", "kept"], InKey(default=False)] = "fresh"
    """a client's optimiser starts afresh in each round, or keeps its moments over all rounds (codes
    of FED-PUB and FedTAD). *Not in the key* where it is `fresh`"""
    learning_rate: StepSize = 0.005
    """step size; the default (ours) trains where FedDEP's 0.1 with SGD stays at the largest class;
    FedSage has 0.001 with Adam
    """
    weight_decay: Weight = 0.0
    """L2 regularizer, as the optimiser's own option (ours; neither paper names one for the
    classifier)
    """
    full_batch: Annotated[bool, InKey(default=False)] = False
    """a step is on all training nodes of a client, with all their neighbours; `batch_size` and
    `fanout` are then read by FedDEP's pretraining alone. *Not in the key* where it is false"""
    batch_size: Positive = 32
    """training nodes of a mini-batch (FedDEP; FedSage has 64)"""
    fanout: Annotated[int, Field(ge=1, le=10**4)] = 5
    """neighbours d drawn for a node in each layer (FedDEP and FedSage)"""
    rounds: Positive = 50
    """communication rounds; epochs for a model that is trained alone (FedDEP and FedSage: 50
    epochs)
    """
    local_epochs: Positive = 1
    """passes of a client over its training nodes in a round (FedSage's default; FedDEP does not
    say)
    """
    participation: Annotated[float, InKey(default=False), Field(gt=0, le=1)] = 1.0
    """share of the clients that train in a round, at least one; all are sent the weights of each
    round and are evaluated with them. *Not in the key* where it is 1"""
    participants: Annotated[Literal["uniform", "nodes"], InKey(default=False)] = "uniform"
    """how those of a round are drawn, without replacement: all with the same probability, or by
    their numbers of `nodes`. *Not in the key* where it is `uniform`"""
    lost_updates: Annotated[float, InKey(default=False), Field(ge=0, lt=1)] = 0.0
    """probability that a client leaves after its local steps and before it sends anything.
    *Not in the key* where it is 0"""
    new_clients: Annotated[int, InKey(default=False), Field(ge=0)] = 0
    """number of clients, drawn by the run's seed, of which training knows nothing: they are sent
    the weights of each round, do their local steps and send nothing. They alone are tested, where
    owners judge; the others' validation chooses. *Not in the key* where it is 0"""
    client_weights: Literal["nodes", "equal"] = "nodes"
    """weight of a client in the mean of FedAvg: its number of training `nodes` (McMahan et al.,
    2017), or `equal`, 1/M, as in FedSage (Algorithm 1) and FedDEP (Equation 3.1)"""
    evaluation: Annotated[Literal["method", "owners"], InKey(default=False)] = "method"
    """which models are judged: those that the `method` declares, or each client's on its own
    subgraph, before and after the local steps of a round (`owners`). *Not in the key* where it is
    `method`"""
    metric: Annotated[Metric, InKey(default=False)] = "accuracy"
    """how models are judged, and their round is chosen: by `accuracy`, or, where there are two
    classes, by `roc_auc`, the area under the ROC curve, of which tables then speak as accuracy.
    *Not in the key* where it is `accuracy`"""
    encoder: Annotated[str, AfterValidator(_known)] = "sage"
    """layers of the classifier: `sage`, GraphSAGE with mean aggregation (FedDEP and FedSage),
    `sage_selfloop`, in which a node is one of its neighbours (the layers of FedDEP's own
    classifier), `gcn`, `gat`, `mlp`, which sees no edges, `sgc`, a linear map of features that are
    smoothed once a layer, or `gamlp`, an MLP of features over as many hops, weighed by each node;
    or the name of one that a plugin declares, or any model of PyTorch Geometric by its dotted
    name, such as `torch_geometric.nn.models.GIN`"""
    layers: Annotated[int, Field(ge=1, le=16)] = 2
    """number of layers (FedDEP and FedSage: 2)"""
    hidden_channels: Width = 128
    """width of the hidden layers (code)"""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """probability that a hidden unit is set to zero in training (code)"""

    def restricted(self, names: Collection[str], reader: str) -> Any:
        """A view that shows only the fields ``names``, which ``reader`` has declared."""
        return ConfigView({name: getattr(self, name) for name in names}, reader)


def check_metric(metric: Metric, classes: int, graph: str) -> None:
    """Make sure that a metric is one for so many classes.

    Raises:
        ConfigError: if it is not.
    """
    if metric == "roc_auc" and classes != 2:
        raise ConfigError(
            f"metric is roc_auc (key settings), which is for two classes, but {graph} has {classes}"
        )


def check_new_clients(number: int, clients: int | None) -> None:
    """Make sure that some of so many clients are not new.

    Raises:
        ConfigError: if all are.
    """
    if number and number >= (clients or 0):
        raise ConfigError(
            f"new_clients is {number} (key settings), but there are {clients or 0} clients, one of "
            "which at least has to train"
        )


class ConfigView:
    """Some fields of a :class:`TrainingConfig`; reading any other raises an error, so that no cache
    depends on it unnoticed.
    """

    def __init__(self, values: dict[str, Any], reader: str) -> None:
        self.__dict__.update(values)
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there.

        Raises:
            AttributeError: naming the reader and the field.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self._reader} reads setting.{name}, which it does not declare")

    def replace(self, **changes: Any) -> "ConfigView":
        """A copy with some fields set."""
        shown = {name: value for name, value in self.__dict__.items() if name != "_reader"}
        return ConfigView({**shown, **changes}, self._reader)


FIELD: dict[str, Any] = {
    **{
        "optimizer": "adam",
        "optimizer_state": "kept",
        "learning_rate": 0.01,
        "weight_decay": 0.0005,
        "full_batch": True,
    },
    **{
        "rounds": 100,
        "local_epochs": 3,
        "evaluation": "owners",
        "encoder": "gcn",
        "layers": 2,
        "hidden_channels": 64,
    },
    "dropout": 0.5,
}
"""The setting of most papers on subgraph federated learning (FED-PUB, FedGTA, FedTAD, OpenFGL)."""
SEARCH: Space = {
    "optimizer": ("adam", "sgd"),
    "learning_rate": By("optimizer", {"adam": log(0.0003, 0.1), "sgd": log(0.01, 4)}),
    "weight_decay": (0.0, 0.00005, 0.0005, 0.005),
    "local_epochs": integers(1, 10),
    "dropout": linear(0, 0.8),
    "encoder": ("gcn", "sage", "mlp"),
    "hidden_channels": integers(16, 256, log=True),
}
"""What a search tries of the setting; of the encoders those that a method can train."""
PROTOCOLS: dict[str, dict[str, Any]] = {
    "global": {"setting": {}, "split": {}, "clients": 5, "search": SEARCH},
    "field": {
        "setting": FIELD,
        "split": {"method": "within_clients", "train": 0.2, "val": 0.4},
        "clients": 10,
        "search": SEARCH,
    },
}
"""Where nothing else is said: what of the setting and of the split differs from their defaults, the
number of clients, and what a search tries of the setting.
"""
