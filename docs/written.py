"""How pages write numbers and anchors."""

import math
import re

MINUS = "−"


def number(value: float, digits: int = 3) -> str:
    """A number with so many decimals, such as ``0.884`` or ``−0.002``; an en dash where there is
    none.
    """
    if value is None or math.isnan(value):
        return "–"
    written = f"{value:.{digits}f}"
    return written.replace("-", MINUS) if float(written) else written.lstrip("-")


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, such as ``+0.002``."""
    written = number(value, digits)
    return written if written[0] in f"{MINUS}–" else f"+{written}"


def slug(heading: str, separator: str = "-") -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)
