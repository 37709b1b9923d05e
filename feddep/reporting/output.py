"""Tables, pages and figures as files.  What computes them gives a mapping from file names to
contents.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import drawing
from feddep.utils.csv_files import write_csv
from feddep.utils.files import write_text


def write(directory: Path, contents: Mapping[str, Any]) -> None:
    """Write each content to its name below a directory.

    Args:
        directory: where to.
        contents: a text; a table, as CSV with six significant digits; or a figure, under a name
            without suffix, as SVG.
    """
    for name, content in contents.items():
        if isinstance(content, Figure):
            write_text(directory / f"{name}.svg", drawing.svg(content))
        elif isinstance(content, pd.DataFrame):
            write_csv(directory / name, content)
        else:
            write_text(directory / name, content)
