"""How a classifier is trained: the numbers that a paper's "experimental settings" paragraph
gives.
"""

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from feddep.nn.encoder_names import ADDED, ENCODERS, is_encoder
from feddep.utils.errors import ConfigError
from feddep.utils.parameters import InKey, Natural, Parameters, Positive, StepSize, Weight, Width
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
    """optimiser of clients; `sgd` has no momentum (FedDEP: `sgd`, FedSage: `adam`)"""
    optimizer_state: Annotated[Literal["fresh", "kept"], InKey(default=False)] = "fresh"
    """whether a client's optimiser starts afresh in each round or keeps its moments (FED-PUB,
    FedTAD: `kept`)"""
    learning_rate: StepSize = 0.005
    """step size; 0.1 with SGD stays at the largest class (FedDEP: 0.1, FedSage: 0.001)"""
    weight_decay: Weight = 0.0
    """L2 regularizer, as the optimiser's own option"""
    full_batch: Annotated[bool, InKey(default=False)] = False
    """whether a step takes all training nodes of a client with all their neighbours; only FedDEP's
    pretraining then reads `batch_size` and `fanout`"""
    batch_size: Positive = 32
    """training nodes of a mini-batch (FedDEP: 32, FedSage: 64)"""
    fanout: Annotated[int, Field(ge=1, le=10**4)] = 5
    """neighbours drawn for a node in each layer (FedDEP, FedSage)"""
    rounds: Positive = 50
    """communication rounds; epochs of a model that is trained alone (FedDEP, FedSage)"""
    local_epochs: Positive = 1
    """passes of a client over its training nodes in a round (FedSage)"""
    participation: Annotated[float, InKey(default=False), Field(gt=0, le=1)] = 1.0
    """share of clients that train in a round, at least one; all receive the weights and are
    judged"""
    participants: Annotated[Literal["uniform", "nodes"], InKey(default=False)] = "uniform"
    """how these are drawn, without replacement: with equal probability, or by their `nodes`"""
    lost_updates: Annotated[float, InKey(default=False), Field(ge=0, lt=1)] = 0.0
    """probability that a client trains and then sends nothing"""
    new_clients: Annotated[Natural, InKey(default=False)] = 0
    """clients, drawn by the seed, that receive the weights and train but send nothing; they alone
    are tested, and the others choose the round"""
    client_weights: Literal["nodes", "equal"] = "nodes"
    """what a client counts in FedAvg's mean: its training `nodes`, or the same as others (McMahan
    et al.: `nodes`; FedDEP, FedSage: `equal`)"""
    evaluation: Annotated[Literal["method", "owners"], InKey(default=False)] = "method"
    """which test is reported. `method`: the one that the method declares. `owners`: each client
    classifies its own test nodes with its own model, before or after its local steps, whichever is
    better on validation nodes"""
    metric: Annotated[Metric, InKey(default=False)] = "accuracy"
    """`accuracy`: share of nodes that get their true class. `roc_auc`, for two classes: how often a
    node of class 1 is ranked above one of class 0; pages print it as accuracy"""
    encoder: Annotated[str, AfterValidator(_known)] = "sage"
    """layers of the classifier. `sage`: GraphSAGE with means. `sage_selfloop`: a node is among its
    neighbours, as in FedDEP's own. `gcn`. `gat`. `mlp`: no edges. `sgc`: a linear map of smoothed
    features. `gamlp`: an MLP of features over several hops. Or a plugin's, or a class such as
    `torch_geometric.nn.models.GIN` (FedDEP, FedSage: `sage`)"""
    layers: Annotated[int, Field(ge=1, le=16)] = 2
    """number of layers (FedDEP, FedSage)"""
    hidden_channels: Width = 128
    """width of hidden layers (code)"""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """probability that a hidden unit is 0 in training (code)"""

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
