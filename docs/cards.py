"""The cards of methods: ``docs/methods/NAME.md`` describes the method NAME, or those that its line
**Names.** has.

The list of methods, README's table and the site's contents follow from the cards and from what
methods declare.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from feddep.methods import registry
from feddep.methods.method import Method

FOLDER = Path(__file__).resolve().parent / "methods"
_OTHERS = ("index", "assumptions")
"""Pages of the folder that are no cards."""


@dataclass(frozen=True)
class Card:
    """The file name without ``.md``, the heading, and the methods that the page describes."""

    file: str
    title: str
    methods: tuple[Method, ...]


def cards() -> list[Card]:
    """All cards.

    Raises:
        LookupError: if a method of this package has no card, or a card has a method that there is
            not.
    """
    found = [_card(path) for path in sorted(FOLDER.glob("*.md")) if path.stem not in _OTHERS]
    described = {method.name for card in found for method in card.methods}
    if missing := set(registry.built_in()) - described:
        raise LookupError(f"docs/methods has no card of {', '.join(sorted(missing))}")
    return found


def _card(path: Path) -> Card:
    text = path.read_text(encoding="utf-8")
    names = re.search(r"^\*\*Names\.\*\*(.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    named = re.findall(r"`(\w+)`", names[1]) if names else [path.stem]
    unknown = set(named) - set(registry.built_in())
    if unknown:
        raise LookupError(f"{path} describes {', '.join(sorted(unknown))}, which is no method")
    title = text.partition("\n")[0].removeprefix("# ")
    return Card(path.stem, title, tuple(map(registry.find, named)))


def by_group() -> dict[str, list[Card]]:
    """The cards of each group of methods (:func:`feddep.methods.registry.groups`), in the order of
    declarations; a card is in the group of the first method that it names.
    """
    found = {card.methods[0].name: card for card in cards()}
    return {
        group: [found[method.name] for method in methods if method.name in found]
        for group, methods in registry.groups().items()
    }
