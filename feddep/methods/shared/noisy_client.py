"""A client that noises what a round of training has changed before it sends it."""

from typing import Any

import torch

from feddep.federation.boundary import Payload
from feddep.federation.client import Client
from feddep.privacy.dpsgd import Privacy, privatise


class NoisyClient(Client):
    """Sends w + u, where w are the weights that it was given and u is what training changed of them, clipped and noised.

    Clipping and noise are those of :func:`feddep.privacy.dpsgd.privatise`, of all weights at once.
    """

    def __init__(self, *arguments: Any, privacy: Privacy, noise: torch.Generator) -> None:
        """Set up a client; the first arguments are those of :class:`feddep.federation.client.Client`.

        ``privacy`` gives the longest update and the noise multiplier, ``noise`` is the source of the noise.
        """
        super().__init__(*arguments)
        self.privacy, self.noise = privacy, noise

    def load(self, weights: Payload) -> None:
        """Take over the server's weights, and remember them."""
        super().load(weights)
        self.given = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}

    def weights(self) -> Payload:
        """The weights w + u that are sent."""
        update = {name: weight - self.given[name] for name, weight in super().weights().items()}
        noised = privatise(update, self.privacy.clip, self.privacy.sigma, self.noise)
        return {name: given + noised[name] for name, given in self.given.items()}
