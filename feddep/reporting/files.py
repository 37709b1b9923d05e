"""Tables, pages and figures as files.  What computes them gives a mapping from file names to contents."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import drawing
from feddep.utils.checksum_lists import write_list
from feddep.utils.csv_files import write_csv
from feddep.utils.files import atomic_path, write_json, write_text


def write(directory: Path, contents: Mapping[str, Any], page: str, key: str | None = None) -> None:
    """Write each content to its name below a directory, and the list of their checksums.

    Args:
        directory: where to.
        contents: a text; a table, as CSV with six significant digits; a figure, under a name without suffix, as SVG and PNG;
            or anything else, as JSON.
        page: path of the list below the directory, without its suffix ``.sha256``.
        key: content key of what is shown (:func:`feddep.reporting.page_keys.shown_keys`), which the list keeps.
    """
    written = [path for name, content in contents.items() for path in _write_one(directory / name, content)]
    write_list(directory / f"{page}.sha256", written, key)


def _write_one(path: Path, content: Any) -> list[Path]:
    """Write one content; returns its files."""
    if isinstance(content, Figure):
        return write_figure(content, path.parent, path.name)
    if isinstance(content, str):
        write_text(path, content)
    elif isinstance(content, pd.DataFrame):
        write_csv(path, content)
    else:
        write_json(path, content)
    return [path]


def write_figure(figure: Figure, directory: Path, name: str) -> list[Path]:
    """Write ``name.svg`` and ``name.png``; returns both."""
    drawn, pixels = directory / f"{name}.svg", directory / f"{name}.png"
    write_text(drawn, drawing.svg(figure))
    with atomic_path(pixels) as scratch:
        scratch.write_bytes(drawing.png(figure))
    return [drawn, pixels]
