"""The main table as Markdown, LaTeX and plain text: every number is there, in its place, and the markup holds."""

import re

import pandas as pd
import pytest
from fabricated import Results

from feddep.reporting import main_table, partitions
from feddep.reporting.main_table import Cell, escape, latex, markdown
from feddep.reporting.results import collect


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text: str) -> list[list[list[str]]]:
    """The pipe tables of a Markdown text, as rows of cells, without the rule."""
    found = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    return [[cells(line) for k, line in enumerate(table.splitlines()) if k != 1] for table in found]


def two_datasets(tmp_path) -> Results:
    return Results(tmp_path, datasets={"tiny_graph": {"features": "raw", "synthetic": {}}, "cora": {"features": "raw"}}).write()


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Cell(0.86, 0.01), "0.8600 ± 0.0100"),
        (Cell(0.86, None), "0.8600"),
        (Cell(0.8555, 0.014, printed=True), "0.8555 ± 0.014"),
        (Cell(0.8645, 0.0102, printed=True), "0.8645 ± 0.0102"),
        (Cell(0.8528, 0.020, printed=True), "0.8528 ± 0.020"),
    ],
)
def test_numbers_as_they_are_written(cell: Cell, text: str) -> None:
    assert cell.text() == text


def test_top_two_and_significant() -> None:
    names = ["global", "local", "fedavg", "feddep", "halo"]
    means = [0.9, 0.5, 0.8, 0.85, 0.88]  # an oracle is no competitor
    summary = pd.DataFrame({"dataset": "cora", "clients": [pd.NA, 5, 5, 5, 5], "method": names, "mean": means})
    assert main_table._top_two(summary.astype({"clients": "Int64"}), "mean") == {("fedavg", "cora", 5), ("feddep", "cora", 5)}
    assert main_table._top_two(summary.iloc[:3].astype({"clients": "Int64"}), "mean") == set()
    comparisons = pd.DataFrame(
        {"dataset": "cora", "clients": [5, 10, 3], "method": "local", "p_holm": [0.049, 0.05, float("nan")]}
    )
    assert main_table._significant(comparisons) == {("local", "cora", 5)}


def test_markdown_has_ours_above_each_paper(results: Results) -> None:
    found = collect(results.config)
    text = markdown(found.main_tables)
    main, last = tables(text)
    assert main == [
        ["", "", "Cora M=5", "Cora M=10"],
        ["Global", "ours", "0.8900 ± 0.0100", ""],
        ["", "FedDEP paper", "0.8955 ± 0.004", ""],
        ["", "FedSage paper", "0.8701 ± 0.0042", ""],
        ["Local", "ours", "0.5100 ± 0.0100 \\*", "0.5100 ± 0.0100 \\*"],
        ["", "FedDEP paper", "0.4486 ± 0.108", "0.4334 ± 0.083"],
        ["", "FedSage paper", "0.4431 ± 0.0847", "0.2798 ± 0.008"],
        ["FedAvg", "ours", "0.8600 ± 0.0100", "0.8600 ± 0.0100"],
        ["", "FedDEP paper", "0.8555 ± 0.014", "0.8528 ± 0.020"],
        ["", "FedSage paper", "0.8645 ± 0.005", "0.8626 ± 0.0103"],
    ]
    assert last[7] == ["FedAvg", "ours", "0.8400 ± 0.0100", "0.8400 ± 0.0100"]


def test_markdown_puts_datasets_side_by_side(tmp_path) -> None:
    found = collect(two_datasets(tmp_path).config)
    main, _ = tables(markdown(found.main_tables))
    assert main[0] == ["", "", "Cora M=5", "Cora M=10", "tiny_graph M=5", "tiny_graph M=10"]
    assert main[1][2:] == ["0.8900 ± 0.0100", "", "0.8900 ± 0.0100", ""]
    assert main[2][2:] == ["0.8955 ± 0.004", "", "", ""]
    assert {len(row) for row in main} == {6}


def test_markdown_of_one_whole_graph_method(tmp_path) -> None:
    found = collect(Results(tmp_path, methods=("global",)).write().config)
    main, _ = tables(markdown(found.main_tables))
    assert main[:2] == [["", "", "Cora"], ["Global", "ours", "0.8900 ± 0.0100"]]


def test_partitions_in_markdown(results: Results) -> None:
    (rows,) = tables(partitions.markdown(collect(results.config).partitions))
    assert rows[1] == ["Cora", "5", "ours", "2708", "5278", "542", "954", "510 ± 10.0", "9.7%"]
    assert rows[2] == ["", "", "FedDEP paper", "2708", "5278", "542", "945", "552", "10.5%"]
    assert [row[2] for row in rows[1:]] == ["ours", "FedDEP paper", "FedSage paper"] * 2


def columns_of(line: str) -> int:
    spans = [int(span) for span in re.findall(r"\\multicolumn\{(\d+)\}", line)]
    return line.replace(r"\&", "").count("&") + 1 + sum(spans) - len(spans)


@pytest.mark.parametrize("several", [False, True])
def test_latex_holds_together(results: Results, tmp_path, several: bool) -> None:
    found = collect((two_datasets(tmp_path / "more") if several else results).config)
    text = latex(found.main_tables)
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
    environments = re.findall(r"\\(begin|end)\{([a-z*]+)\}", text)
    assert [name for _, name in environments] == ["table*", "tabular", "tabular", "table*"] * 2
    for tabular in re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, flags=re.DOTALL):
        width = 2 + int(re.search(r"\{ll\*\{(\d+)\}\{c\}\}", tabular)[1])
        lines = [line for line in tabular.splitlines() if line.endswith(r"\\")]
        assert {columns_of(line) for line in lines} == {width}
        last_rule = [int(end) for end in re.findall(r"\\cmidrule\(lr\)\{\d+-(\d+)\}", tabular)][-1]
        assert last_rule == width
    assert r"FedAvg & ours & $0.8600{\pm}0.0100$ & $0.8600{\pm}0.0100$" in text
    assert r"Local & ours & $0.5100{\pm}0.0100^{*}$" in text
    assert r"\multicolumn{2}{c}{$0.8900{\pm}0.0100$}" in text
    assert r"\textcolor{gray}{$0.8555{\pm}0.014$}" in text


def test_latex_escapes_names(tmp_path) -> None:
    found = collect(two_datasets(tmp_path).config)
    assert r"{tiny\_graph}" in latex(found.main_tables)
    assert escape(r"50% & $x_1^2$ \{~}") == (r"50\% \& \$x\_1\textasciicircum{}2\$ \textbackslash{}\{\textasciitilde{}\}")


def test_terminal_shows_the_distance_from_the_papers(results: Results) -> None:
    lines = collect(results.config).printed().splitlines()
    assert lines[0] == "Cora, 5 clients (setting feddep)"
    fields = [re.split(r"\s{2,}", line.strip()) for line in lines]
    assert fields[1] == ["best on validation", "last round", "FedDEP paper", "ours − it", "FedSage paper", "ours − it"]
    assert fields[2][:1] + fields[2][3:5] == ["Global", "0.8955 ± 0.004", "−0.0055"]
    fedavg = ["FedAvg", "0.8600 ± 0.0100", "0.8400 ± 0.0100", "0.8555 ± 0.014", "+0.0045", "0.8645 ± 0.005", "−0.0045"]
    assert fields[4] == fedavg
    assert lines[6] == "Cora, 10 clients (setting feddep)"
    assert fields[7 + 1][0] == "Global"  # stands in each block
    assert lines[-1] == "Test accuracy, mean ± sample standard deviation over 3 seeds."
    assert max(map(len, lines)) <= 120


def test_terminal_without_published_numbers_and_with_one_seed(tmp_path) -> None:
    results = Results(tmp_path, datasets={"tiny": {"features": "raw", "synthetic": {}}}, clients=(3,), seeds=(0,)).write()
    text = collect(results.config).printed()
    assert re.search(r"FedAvg +0\.8500 +0\.8300 +– +–\n", text)
    assert text.endswith("one seed, so there is no standard deviation.\n")
