"""Progress bars on standard error, so that long work is seen to move."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def track(items: Iterable[Item], description: str) -> Iterator[Item]:
    """Iterate over ``items`` with a progress bar."""
    yield from tqdm(items, desc=description, mininterval=1.0, dynamic_ncols=True, leave=True)
