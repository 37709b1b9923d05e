"""The same clients as processes on Flower: a SuperLink, a SuperNode for each client, a ServerApp
and a ClientApp.
"""

from feddep.utils.errors import FeddepError


class FederationError(FeddepError):
    """A federation cannot be started, or stopped: a client is missing, does not answer, or sent
    what may not be sent.
    """
