"""The cards of methods: ``docs/methods/NAME.md`` describes the method NAME, or those that its line
**Names.** has.

The list of methods, README's table and the site's contents follow from the cards and from what
methods declare.  On the site a card also has its messages, hyperparameters and gains.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from written import signed

from feddep.methods import registry
from feddep.methods.method import Method
from feddep.reporting import markdown
from feddep.reporting.frames import records
from feddep.reporting.labels import distinguishing, method_title, place_title

FOLDER = Path(__file__).resolve().parent / "methods"
_OTHERS = ("index", "assumptions")
"""Pages of the folder that are no cards."""
_STUDIES = (
    ("field_tuned/table", "field_graphs/table"),
    ("structure/table",),
    ("tuned/table",),
    ("main/comparisons",),
)
"""The tables of gains; a card has those of the first that know its methods."""
_KINDS = {
    "model": "weights",
    "training": "losses, counts",
    "validation": "validation counts",
    "extra": "what the method adds",
}
"""What kinds of messages hold, where their name does not say it."""


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


def by_needs(card: Card) -> dict[str, list[str]]:
    """Names of a card's methods by their cells in the list of methods: what they assume, on what
    batches they train, and whether clients may be absent.
    """
    found: dict[str, list[str]] = {}
    for method in card.methods:
        batches = {(True, False): "full", (False, True): "mini"}
        absence = ("yes" if method.new_clients else "no new ones") if method.absence else "no"
        cells = [
            ", ".join(method.assumes) or "–",
            batches.get((method.full_batch, method.mini_batch), "both"),
            absence,
        ]
        found.setdefault("|".join(cells), []).append(method.name)
    return found


def completed(card: Card, text: str, read: Callable[[str], pd.DataFrame]) -> str:
    """A card's text with a picture of its messages before the equations, and its hyperparameters
    and gains at the end; ``read`` gives a table by its path in ``results/``, without the suffix.
    """
    by_method = pd.read_csv(FOLDER / "messages.csv").set_index("method").groupby(level=0)
    sent = {name: rows.reset_index(drop=True) for name, rows in by_method}
    before, equations, after = text.partition("```math\n")
    text = before + (_picture(card, sent) if card.methods[0].name in sent else "")
    text += equations + after
    return "\n\n".join([text, _hyperparameters(card), _gains(card, read)])


def _picture(card: Card, sent: dict[str, pd.DataFrame]) -> str:
    """Who sends what to whom, as SVG: an arrow a kind of message, with its size and how often.

    It is of the card's first method, and names the others that send the same; ``sent`` has the
    messages of each method.
    """
    rows = sent[card.methods[0].name]
    alike = [each.title for each in card.methods if rows.equals(sent.get(each.name))]
    left, right = "each client", "server"
    if not card.methods[0].partitioned:
        left, right = "party A: graph and features", "party B: labels"
    said, lines = [], []
    ordered = rows.sort_values(["each_round", "direction"], ascending=[True, False])
    for k, row in enumerate(records(ordered)):
        y, up = 38 + 30 * k, row["direction"] == "up"
        start, end, back = (20, 460, -7) if up else (460, 20, 7)
        count = max(1, row["each_round"] or row["once"])
        what = (
            f"{_KINDS.get(row['kind'], row['kind'])}: {count:.0f} × {row['bytes'] / 1000:,.2f} kB "
            f"{'a round' if row['each_round'] else 'in all'}"
        )
        said.append(f"{left if up else right} to {right if up else left}: {what}")
        lines.append(
            f'<text x="240" y="{y - 6}">{escape(what)}</text>'
            f'<path d="M{start} {y}H{end}m{back} -4l{-back} 4l{back} 4"/>'
        )
    high = 30 * len(said) + 26
    return (
        f'<figure class="messages"><svg role="img" viewBox="0 0 480 {high}" '
        f'aria-label="{escape("; ".join(said))}"><path d="M20 20V{high}M460 20V{high}"/>'
        f'<text class="side" x="0" y="12">{left}</text>'
        f'<text class="other" x="480" y="12">{right}</text>{"".join(lines)}</svg>'
        f"<figcaption>Messages on Cora in ten parts, by defaults: {', '.join(alike)}."
        "</figcaption></figure>\n\n"
    )


def _hyperparameters(card: Card) -> str:
    rows = {
        name: (
            f"`{name}`",
            f"`{json.dumps(field.default)}`".replace('"', ""),
            " ".join(str(field.description).split()).replace("](../docs/", "](../"),
            "yes" if name in method.search else "",
        )
        for method in card.methods
        for name, field in method.parameters.model_fields.items()
    }
    table = markdown.table(["", "default", "meaning", "searched"], list(rows.values()))
    return f"## Hyperparameters\n\n{table if rows else 'None beside those of the setting.'}"


def _gains(card: Card, read: Callable[[str], pd.DataFrame]) -> str:
    """A table of the method's differences from the reference by graph, each drawn."""
    names = [method.name for method in card.methods]
    for studies in _STUDIES:
        table = pd.concat(map(read, studies))
        found = table[table["method"].isin(names) & table["low"].notna()]
        if len(found):
            break
    else:
        return ""
    short = distinguishing(found["dataset"])
    reach = min(0.1, float(found[["low", "high"]].abs().max(axis=None)))
    lines = [
        [
            *([method_title(row["method"])] if found["method"].nunique() > 1 else []),
            place_title(short[row["dataset"]], row["clients"]),
            f"{signed(row['mean_difference'])} [{signed(row['low'])}, {signed(row['high'])}]",
            row["verdict"],
            _interval(row, reach),
        ]
        for row in records(found)
    ]
    head = ["method"] * (len(lines[0]) - 4) + ["graph", "gain", "verdict", f"±{reach:.2g}"]
    return (
        f"## Gain by graph\n\nAccuracy less that of {method_title(found['reference'].iloc[0])}, "
        f"with its 95 % interval ([the study](../../results/{Path(studies[0]).parent}/page.md)). "
        f"Grey: ±0.01.\n\n{markdown.table(head, lines)}"
    )


def _interval(row: dict[str, Any], reach: float) -> str:
    """A difference with its interval as SVG; hollow where it is not decided."""
    low, mean, high, point = (
        80 + 76 * max(-1.0, min(1.0, value / reach))
        for value in (row["low"], row["mean_difference"], row["high"], 0.01)
    )
    return (
        f'<svg class="gain" viewBox="0 0 160 14" aria-hidden="true">'
        f'<rect x="{160 - point:.1f}" width="{2 * point - 160:.1f}" height="14"/>'
        f'<path d="M80 0v14M{low:.1f} 7H{high:.1f}"/>'
        f'<circle class="{row["verdict"]}" cx="{mean:.1f}" cy="7" r="4"/></svg>'
    )
