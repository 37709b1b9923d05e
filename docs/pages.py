"""Pages from their templates: ``python docs/pages.py`` renders each ``NAME.md.j2`` of the
repository to a page beside it.

A template is Markdown with Jinja2.  What a page says of results it reads from the tables in
``results/`` by the functions of :class:`Tables`, so no decimal of a result is typed.
``tests/test_templates.py`` fails where a page is not what its template renders.
"""

import re
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import board
import configuration
import pandas as pd
from cards import by_group, by_needs, cards
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from written import number, signed

from feddep.config import variants
from feddep.datasets.public_graphs import REGISTRY
from feddep.reporting import inference, results, statistics
from feddep.reporting.frames import in_paper_order
from feddep.reporting.labels import dataset_title, marked_title, method_title, sees_more

ROOT = Path(__file__).resolve().parent.parent


class Tables:
    """What templates read: tables of ``results/``, named ``STUDY/TABLE`` or, for ``STUDY/table``,
    ``STUDY``.

    A table elsewhere has the path to it from there, such as ``../benchmarks/results/kernels``.

    Rows are picked by the values of columns: one value, a list of values, or ``None`` where the
    column is empty.
    """

    def __init__(self, root: Path = ROOT / "results") -> None:
        self.root = root
        self.read = cache(self._read)

    def _read(self, name: str) -> pd.DataFrame:
        study, _, table = name.partition("/")
        return pd.read_csv(self.root / study / f"{table or 'table'}.csv", low_memory=False)

    def rows(self, name: str, **where: Any) -> pd.DataFrame:
        """The rows of a table that have these values.

        Raises:
            LookupError: if there is no such column or no such row.
        """
        table = self.read(name)
        for column, value in where.items():
            if column not in table:
                raise LookupError(f"{name} has no column {column}; it has {', '.join(table)}")
            if value is None:
                table = table[table[column].isna()]
            else:
                table = table[table[column].isin(value if isinstance(value, list) else [value])]
        if table.empty:
            raise LookupError(f"{name} has no row with {where}")
        return table

    def value(self, name: str, column: str, **where: Any) -> Any:
        """The value of a column in the one row that has these values."""
        table = self.rows(name, **where)
        if len(table) > 1:
            raise LookupError(f"{name} has {len(table)} rows with {where}; name one")
        return table[column].iloc[0]

    def num(self, name: str, column: str, digits: int = 3, **where: Any) -> str:
        """That value, written."""
        return number(self.value(name, column, **where), digits)

    def diff(
        self, name: str, column: str = "mean_difference", digits: int = 3, **where: Any
    ) -> str:
        """A difference with its interval, such as ``+0.002 [−0.009, +0.013]``; the interval is of
        columns low and high, and left out where one or two graphs have none.
        """
        low, high = (self.value(name, side, **where) for side in ("low", "high"))
        middle = signed(self.value(name, column, **where), digits)
        return (
            middle if pd.isna(low) else f"{middle} [{signed(low, digits)}, {signed(high, digits)}]"
        )

    def span(
        self, name: str, column: str, digits: int = 3, sign: bool = False, **where: Any
    ) -> str:
        """The least and the greatest of a column, such as ``0.771 to 0.833``."""
        values, write = self.rows(name, **where)[column], signed if sign else number
        low, high = write(values.min(), digits), write(values.max(), digits)
        return low if low == high else f"{low} to {high}"

    def mean(
        self, name: str, column: str, digits: int = 3, sign: bool = False, **where: Any
    ) -> str:
        """The mean of a column."""
        return (signed if sign else number)(self.rows(name, **where)[column].mean(), digits)

    def count(self, name: str, **where: Any) -> int:
        """The number of rows."""
        return len(self.rows(name, **where))

    def verdicts(self, name: str, **where: Any) -> str:
        """How many differences have each verdict, such as ``2 worse, 7 undecided``."""
        return statistics.counted(self.rows(name, **where)).partition(": ")[2]

    def grid(
        self,
        name: str,
        columns: str,
        values: str | list[str],
        rows: str = "method",
        digits: int = 3,
        sign: bool = False,
        titles: Mapping[Any, str] | None = None,
        **where: Any,
    ) -> str:
        """A Markdown table with a line for each value of ``rows`` and a column for each of
        ``columns``.

        Args:
            values: the column that a cell is of; of several, they stand in a cell one after
                another.
            titles: how values of rows and columns are called; methods and datasets have titles of
                their own.
        """
        table = self.rows(name, **where)
        values = [values] if isinstance(values, str) else values
        write = signed if sign else number
        across, down = (
            in_paper_order(table, [name])[name].dropna().unique() for name in (columns, rows)
        )
        lines = [["", *(_title(columns, each, titles) for each in across)]]
        for each in down:
            cells = []
            for other in across:
                found = table[(table[rows] == each) & (table[columns] == other)]
                if len(found) > 1:
                    raise LookupError(
                        f"{name} has {len(found)} rows with {rows} {each} and {columns} "
                        f"{other}; name one"
                    )
                cells.append(
                    "; ".join(write(found[value].iloc[0], digits) for value in values)
                    if len(found)
                    else "–"
                )
            lines.append([_title(rows, each, titles), *cells])
        return markdown(lines)


def markdown(lines: list[list[str]]) -> str:
    """A Markdown table of numbers, not padded: a changed number changes its line alone.

    The first line is the head.
    """
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return "\n".join(f"|{'|'.join(cells)}|" for cells in (lines[0], rule, *lines[1:]))


def _title(column: str, value: Any, titles: Mapping[Any, str] | None) -> str:
    if titles and value in titles:
        return titles[value]
    kinds = {"method": method_title, "dataset": dataset_title}
    if column in kinds:
        return kinds[column](value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def run_columns() -> str:
    """A Markdown table of the columns of :func:`feddep.api.results`, but options, and what columns
    ending in ``_last`` have of the last round.
    """
    rows = (
        (f"`{name}`", column.type, column.unit, column.meaning)
        for name, column in results.schema().items()
        if "." not in name and not name.endswith("_last")
    )
    return configuration.table(("column", "type", "unit", "meaning"), *rows).rstrip()


def readings() -> pd.DataFrame:
    """The rows of ``docs/results/published-codes.csv``, with the repository that a line is of."""
    table = pd.read_csv(ROOT / "docs/results/published-codes.csv", keep_default_na=False)
    return table.assign(repository=table["line"].str.extract("github.com/([^/]+/[^/]+)"))


def urls() -> dict[str, str]:
    """The addresses of the project by name."""
    found: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "urls"
    ]
    return found


def environment(tables: Tables) -> Environment:
    """Jinja2 with the functions of :class:`Tables`, and the filters ``number`` and ``signed``."""
    jinja = Environment(
        loader=FileSystemLoader(ROOT), undefined=StrictUndefined, keep_trailing_newline=True
    )
    jinja.filters |= {
        "number": number,
        "signed": signed,
        "ticked": "`{}`".format,
        "coded": lambda text: re.sub("`(.+?)`", r"<code>\1</code>", text),
        "graph_title": lambda spelled: dataset_title(variants.base(spelled)),
    }
    for name in ("rows", "value", "num", "diff", "span", "mean", "count", "verdicts", "grid"):
        jinja.globals[name] = getattr(tables, name)
    jinja.globals |= {
        "board": lambda: board.html(tables.read),
        "plain_board": lambda: board.plain(tables.read),
        "cards_by_group": by_group(),
        "by_needs": by_needs,
        "card_files": {card.title: card.file for card in cards()},
        "graphs": list(REGISTRY.values()),
        "readings": readings(),
        "markdown": markdown,
        "sees_more": sees_more,
        "t_test": inference.t_test,
        "urls": urls(),
        "marked_title": marked_title,
        "number": number,
        "run_columns": run_columns,
        "signed": signed,
        "method_title": method_title,
        "dataset_title": dataset_title,
    }
    jinja.trim_blocks = jinja.lstrip_blocks = True
    return jinja


def templates() -> list[Path]:
    """All templates, relative to the repository."""
    found = (
        path.relative_to(ROOT)
        for folder in ("benchmarks", "docs")
        for path in (ROOT / folder).rglob("*.md.j2")
    )
    return [Path("README.md.j2"), *sorted(found)]


def render(template: Path, tables: Tables | None = None, site: bool = False) -> str:
    """The page of a template: that of the repository, or that of the site, where tables can be
    sorted and filtered.
    """
    return environment(tables or Tables()).get_template(template.as_posix()).render(site=site)


def main() -> None:
    """Render the templates that are named, or all; those that fail are named, and the exit status
    is 1.
    """
    chosen = [Path(name).resolve().relative_to(ROOT) for name in sys.argv[1:]] or templates()
    tables, failed = Tables(), False
    for template in chosen:
        try:
            (ROOT / template.with_suffix("")).write_text(render(template, tables), encoding="utf-8")
        except Exception as error:
            print(f"{template}: {error}", file=sys.stderr)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
