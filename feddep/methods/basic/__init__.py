"""The frameworks that need no paper of their own: Global, Local and FedAvg."""

from feddep.methods.framework import ANY_ENCODER, Framework
from feddep.utils.parameters import Parameters


class NoParameters(Parameters):
    """A framework without parameters of its own."""


FRAMEWORKS = (
    Framework(
        "global",
        "Global",
        NoParameters,
        "feddep.methods.basic.alone:train_globally",
        partitioned=False,
        assumes=("whole graph in one place",),
        encoders=ANY_ENCODER,
    ),
    Framework("local", "Local", NoParameters, "feddep.methods.basic.alone:train_locally", encoders=ANY_ENCODER),
    Framework("fedavg", "FedAvg", NoParameters, "feddep.methods.basic.fedavg:run", encoders=ANY_ENCODER),
)
