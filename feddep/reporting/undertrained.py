"""Which runs had not stopped rising when their rounds were over, and how tables say so."""

from collections.abc import Sequence

PERCENT = 5
"""The last rounds of a run, in percent of all, in which a best round says that more rounds might be better."""
MARK = "‡"
NOTE = (
    f"`{MARK}`: most of these runs are undertrained: their best round on validation nodes is among the last {PERCENT} % of\n"
    "  their rounds, and with more of them they might be better."
)


def is_undertrained(best_round: int | Sequence[int], rounds: int) -> bool:
    """Whether a run is best among the last :data:`PERCENT` percent of its rounds; of several models, whether most of them are.

    Args:
        best_round: the first of the rounds with the highest validation accuracy, from 1; a list where clients have models of
            their own.
        rounds: how many rounds were trained.
    """
    found = [best_round] if isinstance(best_round, int) else list(best_round)
    late = [number for number in found if 100 * (rounds - number) < PERCENT * rounds]
    return mostly(len(late) / len(found))


def mostly(share: float | None) -> bool:
    """Whether a share of undertrained runs, None where there are no runs, is more than a half."""
    return share is not None and share > 0.5


def mark(share: float | None) -> str:
    """What follows a number of such runs: a mark, or nothing."""
    return f" {MARK}" if mostly(share) else ""


def note(text: str) -> str:
    """The sentence that explains the mark, or nothing if the text has none."""
    return NOTE if MARK in text else ""
