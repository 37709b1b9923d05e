"""Secure aggregation by pairwise masks: the server learns the sum of the clients' weights, and no client's own.

The scheme is that of Bonawitz et al. ("Practical secure aggregation for privacy-preserving machine learning", CCS 2017, Section
4.0), without what recovers the masks of lost clients, as a round here has all clients or does not end.  Clients i and j agree on
a secret by X25519.  In each round both draw the same mask from it (HKDF-SHA256, ChaCha20); the one with the smaller number adds
it to its weights, and the other takes it off.  In the sum of all clients the masks are gone.

Sums are of 64-bit integers and wrap around.  A weight w counts round(2³² w) times the client's number of nodes, so that the
mean is that of the simulation up to the rounding of its 32-bit numbers.

Keys are made when the data are cut, and each client's folder has everybody's public key: none comes from the server.  Weights
that nobody sees cannot be checked: one client can spoil the mean.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from feddep.federation.boundary import Payload
from feddep.flower import FederationError

MASKED = "masked model"
"""The kind of the message that a client sends in place of its weights."""

CLIP = 64.0
"""Clients with larger weights than this refuse to send them."""

SCALE = 2.0**32
"""One in the integers that are added up: with all of CLIP, and 2²⁵ training nodes in all, their sum is below 2⁶³."""


def make_keys(folders: Sequence[Path]) -> list[str]:
    """Write a private key to each client's folder; returns their public keys, hex."""
    keys = [X25519PrivateKey.generate() for _ in folders]
    for folder, key in zip(folders, keys, strict=True):
        path = folder / "mask.key"
        path.touch(mode=0o600)
        path.write_bytes(key.private_bytes_raw())
    return [key.public_key().public_bytes_raw().hex() for key in keys]


def masked(weights: Payload, nodes: int, key: bytes, client: int, public_keys: Sequence[str], when: str) -> Payload:
    """What a client sends: its weights times its nodes as integers, and the masks that it shares with all others.

    Args:
        weights: the weights.
        nodes: how much they count.
        key: the client's private key.
        client: its number.
        public_keys: those of all clients.
        when: names run and round; no mask is used for two.

    Raises:
        FederationError: if a weight is not finite or larger than :data:`CLIP`.
    """
    sent = {}
    streams = [
        (1 if client < other else -1, _stream(key, public, when)) for other, public in enumerate(public_keys) if other != client
    ]
    for name, tensor in sorted(weights.items()):
        if not (tensor.abs() <= CLIP).all():
            raise FederationError(f"secure aggregation takes weights from {-CLIP:g} to {CLIP:g}, but {name} has others")
        total = np.rint(tensor.numpy().astype(np.float64) * SCALE).astype(np.int64) * nodes
        for sign, stream in streams:
            total += sign * np.frombuffer(stream.update(bytes(total.nbytes)), dtype="<i8").reshape(total.shape)
        sent[name] = torch.from_numpy(total)
    return sent


def unmasked_mean(sent: Sequence[Mapping[str, torch.Tensor]], nodes: Sequence[float]) -> Payload:
    """The mean of the weights that all clients have masked, weighted by their nodes."""
    totals = {name: torch.stack([each[name] for each in sent]).sum(0) for name in sent[0]}
    return {name: (total.double() / (SCALE * sum(nodes))).float() for name, total in totals.items()}


def _stream(key: bytes, public: str, when: str) -> CipherContext:
    """The pseudo-random bytes that the two clients of a private and a public key share."""
    secret = X25519PrivateKey.from_private_bytes(key).exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(public)))
    derived = HKDF(SHA256(), 32, salt=None, info=when.encode()).derive(secret)
    return Cipher(algorithms.ChaCha20(derived, bytes(16)), mode=None).encryptor()
