"""Progress bars on standard error, so that long work is seen to move."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def track(items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    """Iterate over ``items`` with a progress bar; ``total`` is their number where it is not
    ``len(items)``.
    """
    yield from tqdm(
        items, desc=description, total=total, mininterval=1.0, dynamic_ncols=True, leave=True
    )
