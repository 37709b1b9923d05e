"""FedGraph: convolution across clients on hidden embeddings, and a learned sampling policy (Chen et
al., 2021).
"""

from typing import Annotated

from pydantic import Field

from feddep.methods.method import CROSS_CLIENT_EDGES, Method
from feddep.utils.parameters import Parameters, Repetitions, Weight


class FedGraphParameters(Parameters):
    """How the agent that chooses fan-outs practises, and what it is rewarded for."""

    episodes: Repetitions = 1
    """trainings in which the agent practises (code)"""
    updates: Repetitions = 8
    """agent's learning steps after each round of practice (code: 1, in 200 rounds)"""
    target: Annotated[float, Field(gt=0, le=1)] = 0.9
    """accuracy that the reward is measured from (code: 0.72 to 0.99 by graph)"""
    cost_weight: Weight = 0.1
    """price of the largest fan-out everywhere, in units of reward"""


GROUP = "Exchange between clients"
METHODS = (
    Method(
        "fedgraph",
        "FedGraph",
        FedGraphParameters,
        "feddep.methods.fedgraph.fedgraph:run",
        assumes=(CROSS_CLIENT_EDGES, "node embeddings shared"),
        encoders=("sage", "gcn"),
        full_batch=True,
        sampled=("sage",),
        look=("#009E73", 0),
    ),
)
