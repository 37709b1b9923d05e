"""FedGSL: subgraphs augmented by learned edges to noised embeddings of other clients' nodes (Zhao,
Huang and Tsai, 2022).
"""

from feddep.methods.method import Method
from feddep.utils.parameters import Parameters, PerNode, Positive, Share, Weight
from feddep.utils.spaces import integers, linear


class FedGSLParameters(Parameters):
    """The learned edges and the noise; all defaults are ours."""

    edges: PerNode = 5
    """learned edges k of a node"""
    share: Share = 0.2
    """share λ of learned edges in the mean neighbour of the last convolution"""
    noise: Weight = 1.0
    """root-mean-square length of noise on an embedding of length 1"""
    refresh: Positive = 10
    """rounds between two exchanges of embeddings"""


GROUP = "Exchange between clients"
METHODS = (
    Method(
        "fedgsl",
        "FedGSL",
        FedGSLParameters,
        "feddep.methods.fedgsl.fedgsl:run",
        assumes=("noised node embeddings shared",),
        encoders=("sage", "gcn"),
        full_batch=True,
        sampled=("sage",),
        search={
            "edges": integers(1, 20, log=True),
            "share": linear(0, 1),
            "refresh": integers(1, 50, log=True),
        },
        as_fedavg={"share": 0.0},
        look=("#009E73", 1),
    ),
)
