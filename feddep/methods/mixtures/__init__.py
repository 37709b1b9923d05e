"""Methods whose server gives each client its own mean of all clients' weights: FedGTA."""

from typing import Annotated, Literal

from pydantic import Field

from feddep.methods.method import ANY_ENCODER, Method
from feddep.utils.parameters import Parameters, Repetitions, Share


class FedGTAParameters(Parameters):
    """What a client tells of its predictions, and whom it is mixed with.

    The defaults are the authors' for Cora.  They take 20 moments and a threshold of 0.6 for CiteSeer, and 13 moments `origin` and
    a threshold of 0.65 for PubMed (comments in their config.py).
    """

    moments: Literal["origin", "mean", "hybrid"] = "hybrid"
    """moments of the propagated predictions: about 0 (`origin`), about their mean (`mean`), or both (code, Cora)"""
    orders: Annotated[int, Field(ge=1, le=100)] = 6
    """number M of moments a class (code, Cora)"""
    threshold: Annotated[float, Field(ge=-1, le=1)] = 0.5
    """cosine of two clients' moments above which they are mixed (code, Cora); with 1 each client keeps its own weights"""
    propagation_steps: Repetitions = 5
    """steps of label propagation (code)"""
    propagation: Share = 0.5
    """what a node takes from its neighbours in a step (code)"""
    temperature: Annotated[float, Field(ge=0.01, le=1000)] = 20.0
    """divides what is propagated before the softmax of the confidence (code)"""


_FOLDER = "feddep.methods.mixtures"

METHODS = (
    Method(
        "fedgta",
        "FedGTA",
        FedGTAParameters,
        f"{_FOLDER}.fedgta:run",
        encoders=ANY_ENCODER,
        full_batch=True,
        evaluation="local_before",
    ),
)
