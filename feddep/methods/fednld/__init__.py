"""FedNLD: classifiers that read the label distribution of the neighbours that a client lacks.  Ours; no paper has it.

Each node v of a client has a distribution p_v over classes, predicted by classifiers that were trained by FedAvg on other
training nodes (:mod:`feddep.methods.fednld.cross_fitting`).  For its missing neighbours' distributions stand those of similar
nodes of the same client, or the answers of the clients that own the neighbours, which are private by randomised response
(:mod:`feddep.methods.fednld.neighbours`).  A softmax regression, trained by FedAvg, reads p_v and these
(:mod:`feddep.methods.fednld.fednld`).  Defaults are what does best on validation nodes of seeds that no table has.
"""

from typing import Annotated

from pydantic import Field

from feddep.methods.method import ANY_ENCODER, Method, Step
from feddep.utils.parameters import Parameters, Positive, StepSize

Neighbours = Annotated[int, Field(ge=0, le=1000)]


class CrossFittingParameters(Parameters):
    """How the distributions p are predicted."""

    folds: Annotated[int, Field(ge=1, le=10)] = 3
    """folds K that each client's training nodes are divided into; a training node's p is that of the classifier whose training
    left its fold out (study fednld_search). 1: of a classifier that was trained on the node itself"""
    pretraining_epochs: Positive = 2
    """passes over the training nodes in a round for each that the setting has; with two folds, as many steps as FedAvg takes"""


class FedNLDParameters(CrossFittingParameters):
    """All choices of FedNLD."""

    feature_knn: Neighbours = 10
    """nodes of the same client, the most similar in features, whose distributions stand for missing neighbours' (study
    fednld_search); 0: none"""
    regression_epochs: Positive = 5
    """full-batch steps of Adam that a client takes in a round of the regression's training"""
    regression_learning_rate: StepSize = 0.03
    """step size of Adam there"""


class FedNLDAnswersParameters(FedNLDParameters):
    """Those of FedNLD, and how private answers are."""

    feature_knn: Neighbours = 5
    """as for `fednld` (study fednld_answers_search)"""
    label_rounds: Annotated[int, Field(ge=1, le=10)] = 1
    """answers that each node's owner gives; each but the first is what the regression predicts that has read those before it"""
    quantisation: Annotated[int, Field(ge=1, le=3)] = 1
    """an answer is the nearest distribution whose probabilities are multiples of 1 / quantisation; 1: the most probable class"""
    separate: bool = False
    """weights of their own for nodes without answers, learned from all training nodes, answers left out"""
    epsilon: Annotated[float, Field(gt=0, le=1000)] | None = 4.0
    """ε of the local differential privacy of a node's answers together, which are drawn once for each node and are the same for
    all who ask; null: the true answers"""


CROSS_FITTING = Step(
    "fednld.cross_fitting",
    "pretrain",
    "feddep.methods.fednld.cross_fitting:cross_fit",
    CrossFittingParameters,
    setting=(
        *("optimizer", "learning_rate", "weight_decay", "batch_size", "fanout", "rounds", "local_epochs", "client_weights"),
        *("encoder", "layers", "hidden_channels", "dropout"),
    ),
)


def _steps(parameters: CrossFittingParameters) -> tuple[Step, ...]:
    return (CROSS_FITTING,)


def _method(name: str, title: str, parameters: type[FedNLDParameters], *assumes: str) -> Method:
    function = f"feddep.methods.fednld.fednld:run_{name}"
    return Method(name, title, parameters, function, steps=_steps, assumes=assumes, encoders=ANY_ENCODER)


METHODS = (
    _method("fednld", "FedNLD", FedNLDParameters),
    _method("fednld_counts", "FedNLD, counts", FedNLDParameters, "numbers of missing neighbours known"),
    _method(
        "fednld_answers",
        "FedNLD, answers",
        FedNLDAnswersParameters,
        "cross-client edges known",
        "noised node embeddings shared",
    ),
)
