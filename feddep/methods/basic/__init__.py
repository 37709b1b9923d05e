"""The methods that need no paper of their own: Global, Local and FedAvg."""

from feddep.methods.method import ANY_ENCODER, Method
from feddep.utils.parameters import Parameters


class NoParameters(Parameters):
    """A method without parameters of its own."""


GROUP = "References"
METHODS = (
    Method(
        "global",
        "Global",
        NoParameters,
        "feddep.methods.basic.alone:train_globally",
        partitioned=False,
        assumes=("whole graph in one place",),
        encoders=ANY_ENCODER,
        full_batch=True,
        absence=True,
        tested_apart=True,
        look=("#777777", 0),
    ),
    Method(
        "local",
        "Local",
        NoParameters,
        "feddep.methods.basic.alone:train_locally",
        encoders=ANY_ENCODER,
        full_batch=True,
        absence=True,
        tested_apart=True,
        look=("#777777", 3),
    ),
    Method(
        "fedavg",
        "FedAvg",
        NoParameters,
        "feddep.methods.basic.fedavg:run",
        encoders=ANY_ENCODER,
        full_batch=True,
        absence=True,
        tested_apart=True,
        look=("#000000", 0),
    ),
)
