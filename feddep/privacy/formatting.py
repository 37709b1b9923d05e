"""How guarantees are printed: δ near 1, aligned tables for a terminal, remarks as sentences."""

import math
import unicodedata
from collections.abc import Sequence, Set

from feddep.privacy.accountant import Guarantee


def format_delta(guarantee: Guarantee) -> str:
    """δ with four significant digits; near 1 as ``1 − 2.5e-18``."""
    if guarantee.log_rest > math.log(1e-4):
        return f"{guarantee.delta:.4g}"
    if math.isinf(guarantee.log_rest):
        return "1"
    exponent = math.floor(guarantee.log_rest / math.log(10))  # 1 − δ itself may underflow
    digits, carry = f"{math.exp(guarantee.log_rest - exponent * math.log(10)):.1e}".split("e")
    return f"1 − {digits}e{exponent + int(carry)}"


def format_number(value: float) -> str:
    """Four significant digits, or ∞."""
    return f"{value:.4g}" if math.isfinite(value) else "∞"


def aligned_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], left: Set[int]) -> str:
    """A table whose columns are aligned, indented below its title.

    Args:
        title: the lines above it.
        header: names of the columns.
        rows: the cells.
        left: the columns that are aligned to the left; the others are to the right.
    """
    lines = [header, *rows]
    widths = [max(_width(line[column]) for line in lines) for column in range(len(header))]
    texts = [title]
    for line in lines:
        padded = []
        for column, (text, width) in enumerate(zip(line, widths, strict=True)):
            space = " " * (width - _width(text))
            padded.append(text + space if column in left else space + text)
        texts.append("  ".join(["", *padded]).rstrip())
    return "\n".join(texts)


def _width(text: str) -> int:
    """Columns that a text takes in a terminal; the tilde of ε̃ takes none."""
    return sum(not unicodedata.combining(character) for character in text)


def sentences(remarks: Sequence[str | None]) -> str:
    """Remarks, a line each, with a capital letter and a full stop; none is left out."""
    return "\n".join(remark[0].upper() + remark[1:] + "." for remark in remarks if remark)
