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
        self._privacy = privacy
        self._noise = noise
        self._given: Payload = {}

    def load(self, weights: Payload) -> None:
        """Take over the server's weights."""
        super().load(weights)
        self._given = {name: tensor.clone() for name, tensor in self._model.state_dict().items()}

    def _send(self, kind: str, payload: Payload) -> Payload:
        if kind == "model":
            update = {name: payload[name] - given for name, given in self._given.items()}
            noisy = privatise(update, self._privacy.clip, self._privacy.sigma, self._noise)
            payload = {name: given + noisy[name] for name, given in self._given.items()}
        return super()._send(kind, payload)
