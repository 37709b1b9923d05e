"""The main table as plain text, each published number with the distance of ours from it."""

from typing import Any

import pandas as pd

from feddep.reporting import published
from feddep.reporting.frames import records
from feddep.reporting.grid import Cell
from feddep.reporting.labels import dataset_title, framework_title


def accuracy(summary: pd.DataFrame) -> str:
    """One block a setting, dataset and number of clients; frameworks that see the whole graph stand in each.

    Args:
        summary: as :func:`feddep.reporting.accuracy.summarise` gives it.
    """
    papers = [text for title in published.PAPERS.values() for text in (title, "ours − it")]
    header = ["", "best on validation", "last round", *papers]
    sections: list[tuple[str, list[list[str]]]] = []
    for setting, dataset in dict.fromkeys(zip(summary["setting"], summary["dataset"], strict=True)):
        rows = records(summary[(summary["setting"] == setting) & (summary["dataset"] == dataset)])
        for clients in sorted({row["clients"] for row in rows} - {None}) or [None]:
            title = f"{dataset_title(dataset)}{f', {clients} clients' if clients else ''} (setting {setting})"
            sections.append((title, [_line(row) for row in rows if row["clients"] in (None, clients)]))
    lines = [header, *(line for _, section in sections for line in section)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    blocks = ["\n".join([title, *(_aligned(line, widths) for line in [header, *section])]) for title, section in sections]
    return "\n\n".join([*blocks, _note(summary)]) + "\n"


def _line(row: dict[str, Any]) -> list[str]:
    line = [
        framework_title(row["framework"]),
        Cell(row["mean"], row["std"]).text(),
        Cell(row["last_mean"], row["last_std"]).text(),
    ]
    for paper in published.PAPERS:
        theirs = row[f"paper_{paper}_mean"]
        if theirs is None:
            line += ["–", ""]
        else:
            printed = Cell(theirs, row[f"paper_{paper}_std"], printed=True)
            line += [printed.text(), f"{row['mean'] - theirs:+.4f}".replace("-", "−")]
    return line


def _aligned(line: list[str], widths: list[int]) -> str:
    return ("  " + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))).rstrip()


def _note(summary: pd.DataFrame) -> str:
    seeds = sorted(set(summary["seeds"]))
    if seeds == [1]:
        return "Test accuracy; one seed, so there is no standard deviation."
    return f"Test accuracy, mean ± sample standard deviation over {' or '.join(map(str, seeds))} seeds."
