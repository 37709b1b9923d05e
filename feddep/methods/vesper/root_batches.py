"""The batches of root nodes."""

import numpy as np

from feddep.utils import seeding
from feddep.utils.errors import ConfigError


class RootBatches:
    """Batches of training nodes, from a stream that both parties know: each has one of these, and no names need be sent.

    Attributes:
        size: number of nodes B of a batch, but perhaps the last of an epoch.
    """

    def __init__(self, nodes: np.ndarray, size: int, shuffled: bool, seed: int, name: str) -> None:
        """Start the stream ``name`` of the run ``seed``.

        Args:
            nodes: the training nodes, shape (N_T,).
            size: number of nodes B of a batch.
            shuffled: whether the batches of an epoch divide the training nodes, so that the last may be smaller; otherwise each
                batch is drawn uniformly without replacement, whatever the others are.
            seed: the run's seed.
            name: names the stream.

        Raises:
            ConfigError: if B is above N_T.
        """
        if size > len(nodes):
            raise ConfigError(f"setting.batch_size is {size}; it must be at most the number of training nodes, {len(nodes)}")
        self.size = size
        self._nodes, self._shuffled = nodes, shuffled
        self._rng = seeding.generator(seed, name)
        self._left = nodes[:0]

    @property
    def in_epoch(self) -> int:
        """Number of batches ⌈N_T/B⌉ of an epoch."""
        return -(-len(self._nodes) // self.size)

    @property
    def sizes(self) -> set[int]:
        """The sizes that a batch may have."""
        last = len(self._nodes) % self.size
        return {self.size, last} if self._shuffled and last else {self.size}

    def draw(self) -> np.ndarray:
        """The next batch of node ids."""
        if not self._shuffled:
            return self._rng.choice(self._nodes, self.size, replace=False, shuffle=False)
        if not len(self._left):
            self._left = self._rng.permutation(self._nodes)
        batch, self._left = self._left[: self.size], self._left[self.size :]
        return batch
