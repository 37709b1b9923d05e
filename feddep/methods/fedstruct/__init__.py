"""FedStruct and FedLap: embeddings of the global graph's structure beside each client's classifier
(Aliakbari et al.).
"""

from typing import Annotated, Any

from pydantic import Field

from feddep.methods.method import BUILT_IN_ENCODERS, CROSS_CLIENT_EDGES, Method
from feddep.utils.parameters import Parameters, Weight, Width
from feddep.utils.spaces import integers, log

Steps = Annotated[int, Field(ge=1, le=1000)]
"""A number of multiplications with a matrix of the graph."""


class FedStructParameters(Parameters):
    """The structure features, which are learned (Hop2Vec in the paper).  The defaults are the
    authors' for Cora.
    """

    hops: Steps = 10
    """steps L of the random walk (code)"""
    structure_width: Width = 512
    """width d of a node's structure features (code)"""


class FedLapParameters(Parameters):
    """The spectral basis, and what is learned in it.  The defaults are the authors' for Cora."""

    iterations: Steps = 500
    """steps of the Lanczos iteration (code)"""
    vectors: Steps = 200
    """number r of its vectors that are kept, of the least eigenvalues (code)"""
    structure_width: Width = 512
    """width d of a node's structure features (code)"""
    smoothing: Weight = 10.0
    """weight λ of the structure features' Dirichlet energy (code)"""


def _method(name: str, title: str, parameters: type[Parameters], **more: Any) -> Method:
    return Method(
        name,
        title,
        parameters,
        f"feddep.methods.fedstruct.{name}:run",
        assumes=(CROSS_CLIENT_EDGES, "global structure shared"),
        encoders=BUILT_IN_ENCODERS,
        full_batch=True,
        mini_batch=False,
        **more,
    )


GROUP = "Exchange between clients"
METHODS = (
    _method(
        "fedstruct",
        "FedStruct",
        FedStructParameters,
        search={"hops": integers(2, 20), "structure_width": (128, 256, 512)},
        published=({"hops": 20, "structure_width": 256},),
        look=("#009E73", 5),
    ),
    _method(
        "fedlap",
        "FedLap",
        FedLapParameters,
        search={"smoothing": log(0.1, 100), "structure_width": (128, 256, 512)},
        published=({"smoothing": 1.0, "structure_width": 256},),
        revision=2,
        look=("#009E73", 6),
    ),
)
