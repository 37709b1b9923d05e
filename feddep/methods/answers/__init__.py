"""One FedAvg, one private answer a node from the owners of missing neighbours, and a rule that is
not trained.  Ours.

A classifier, the setting's encoder, is trained by FedAvg
(:mod:`feddep.methods.answers.recorded_fedavg`).  With its weights at the best round on validation
nodes, the owner of each node u that has neighbours at other clients answers once: with the class
that it predicts for u, or u's label where it trains on u, by randomised response
(:mod:`feddep.methods.answers.asking`).  Each client combines its predictions with the answers: by
Bayes' rule or an opinion pool (:mod:`feddep.methods.answers.bayes`), or by label propagation
(:mod:`feddep.methods.answers.propagation`).

On the global graph nobody lacks a neighbour: there both are FedAvg, and so are all choices of a
round, which is FedAvg's best.

Beside them: a second FedAvg on answers as features (:mod:`feddep.methods.answers.class_counts`),
and one on private labels.
"""

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import Field

from feddep.methods.method import ANY_ENCODER, CROSS_CLIENT_EDGES, Method, Step
from feddep.utils.parameters import Parameters, Repetitions
from feddep.utils.spaces import Space, linear


class AnswersParameters(Parameters):
    """Parameters of the owners' answers.  No paper has these choices; they are ours."""

    labels: bool = False
    """whether an owner answers with the label of a training node, in place of its prediction"""
    epsilon: Annotated[float, Field(gt=0, le=1000)] | None = 4.0
    """ε of local differential privacy of a node's one answer; `null`: the true answer"""


class BayesParameters(AnswersParameters):
    """How likely an answer is for each class of the node that asks."""

    likelihood: Literal["kernel", "plain"] = "kernel"
    """`kernel`: Σ_c H(y, c) K(a | c), with the kernel K of randomised response; `plain`: g(y, a),
    whatever ε is"""
    homophily: Annotated[float, Field(ge=0, lt=1)] = 0.6
    """h of g(y, c) = h [y = c] + (1 − h) / C: how much more often a neighbour has the node's class
    than at random"""
    prior_count: Annotated[float, Field(ge=0.01, le=10**6)] | None = None
    """weight of g beside a client's own estimate of H, in neighbours for each class; `null`: H is
    g"""


class LabelPrivacy(Parameters):
    """How private the labels are that the first FedAvg reads."""

    label_epsilon: Annotated[float, Field(gt=0, le=1000)] = 4.0
    """ε of the randomised response that replaces each training and validation label once, before
    all else"""


class PrivateLabelsParameters(BayesParameters, LabelPrivacy):
    """Bayes' rule after a FedAvg on private labels."""


class PropagationParameters(AnswersParameters):
    """How answers spread on a client's subgraph."""

    alpha: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """weight α of neighbours against a node's own prediction"""
    iterations: Repetitions = 30
    """steps of the propagation"""


FEDAVG = Step(
    "answers.fedavg",
    "pretrain",
    "feddep.methods.answers.recorded_fedavg:train",
    Parameters,
    setting=(
        *(
            "optimizer",
            "learning_rate",
            "weight_decay",
            "batch_size",
            "fanout",
            "rounds",
            "local_epochs",
            "client_weights",
        ),
        *("participation", "participants", "lost_updates", "new_clients"),
        *(
            "optimizer_state",
            "full_batch",
            "metric",
            "encoder",
            "layers",
            "hidden_channels",
            "dropout",
        ),
    ),
)
PRIVATE_FEDAVG = dataclasses.replace(
    FEDAVG,
    name="answers.private_fedavg",
    function="feddep.methods.answers.recorded_fedavg:train_on_private_labels",
    parameters=LabelPrivacy,
)


def _method(
    name: str,
    title: str,
    parameters: type[AnswersParameters],
    function: str,
    step: Step = FEDAVG,
    revision: int = 2,
    **more: Any,
) -> Method:
    return Method(
        name,
        title,
        parameters,
        f"feddep.methods.answers.{function}",
        lambda _: (step,),
        assumes=(CROSS_CLIENT_EDGES, "noised node embeddings shared"),
        encoders=ANY_ENCODER,
        full_batch=True,
        revision=revision,
        **more,
    )


# How private answers are is no matter of accuracy.
_PRIOR: Space = {"homophily": linear(0, 0.95), "prior_count": (None, 1.0, 10.0, 100.0)}

GROUP = "Exchange between clients"
METHODS = (
    _method(
        "answers_bayes",
        "Answers, Bayes",
        BayesParameters,
        "bayes:run",
        search=_PRIOR,
        look=("#CC79A7", 0),
    ),
    _method(
        "answers_pooled",
        "Answers, pooled",
        BayesParameters,
        "bayes:run_pooled",
        search=_PRIOR,
        look=("#CC79A7", 2),
    ),
    _method(
        "answers_propagation",
        "Answers, label propagation",
        PropagationParameters,
        "propagation:run",
        search={"alpha": linear(0, 0.95)},
        look=("#CC79A7", 4),
    ),
    _method(
        "answers_counts",
        "Answers as features",
        AnswersParameters,
        "class_counts:run",
        revision=1,
        look=("#CC79A7", 1),
    ),
    _method(
        "answers_private_labels",
        "Answers, Bayes, private labels",
        PrivateLabelsParameters,
        "bayes:run",
        PRIVATE_FEDAVG,
        revision=3,
        look=("#CC79A7", 3),
    ),
)
