"""Tables as Markdown and HTML, and figures as files."""

import re
from pathlib import Path

import pytest

from fabricated import finished, study
from feddep.methods import registry
from feddep.reporting import drawing, figures, html
from feddep.reporting import markdown as md
from feddep.reporting.studies import sweep
from feddep.utils.errors import DataError


def test_what_all_methods_share_is_said_once() -> None:
    made = study(
        *(finished(f"feddep,scale=authors,prototypes={count}", 0, 0.8) for count in (3, 15))
    )
    page = sweep.markdown(made, sweep.tables(made))
    assert (
        page.count("scale=authors")
        == page.count("| FedDEP | 3 ")
        == page.count("| FedDEP | 15 ")
        == 1
    )


def test_cells_show_deviations_intervals_and_marks() -> None:
    row = {"mean": 0.8, "std": 0.01, "unfinished": 0.6, "chosen": True, "above_mlp": True}
    assert md.cell(row, "mean") == "**0.8000 ± 0.0100** † ‡"
    gap = {"gap_mean": 0.1, "gap_low": -0.1, "gap_high": 0.3, "gap_unfinished": 0.5}
    assert md.cell(gap, "gap_mean") == "+0.1000 [-0.1000, +0.3000]"
    difference = {
        "mean_difference": -0.1,
        "low": None,
        "high": None,
        "unfinished": None,
        "stalled": 0.9,
    }
    assert md.cell(difference, "mean_difference") == "-0.1000 §"
    assert [
        md.cell({"x": value}, "x") for value in (None, 1234567, 0.000123456, float("inf"), "a")
    ] == [
        "",
        "1234567",
        "0.0001235",
        "∞",
        "a",
    ]
    assert md.cell({"dataset": "cora,labelled=0.1"}, "dataset") == "Cora, 10 % labelled"
    assert md.cell({"mean": "written"}, "mean") == "written"  # an option of that name


ODD = "A | B <b>x</b>, [y](z), *w* `v` a_b \\ \n & c"
"""A title with whatever Markdown, HTML and tables give a meaning to."""


def test_titles_and_cells_are_text_whatever_is_in_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"# {md.text(ODD)}\n\n" + md.table(["a", "b"], [[md.text(ODD), "1"], ["x|y\nz", "2"]])
    )
    text = html.render(page)
    shown = " ".join(ODD.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"<title>{shown}</title>" in text
    assert f"<h1>{shown}</h1>" in text.replace("<b>", "&lt;b&gt;")
    assert text.count("<td>") == 4
    assert not re.search(r"<(b|a|em|code)[ >]", text.partition("<body>")[2])


def test_a_page_is_one_html_file(tmp_path: Path) -> None:
    with drawing.style():
        figure, _ = drawing.panels(1, 1, 1.0)
    (tmp_path / "figure.svg").write_text(drawing.svg(figure))
    page = tmp_path / "page.md"
    page.write_text("# A title\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n![one](figure.svg)\n")
    text = html.render(page)
    assert text.count("src=") == text.count('src="data:image/svg+xml;base64,') == 1
    assert "<td>1</td>" in text
    assert "<title>A title</title>" in text
    assert not re.search(r"<script|https?://", text)
    page.write_text("![gone](gone.svg)")
    with pytest.raises(DataError):
        html.render(page)


def test_intervals_are_drawn_from_end_to_end_and_what_stalled_sets_no_axis():
    points = {"a": (0.1, -0.4, 0.3, 0), "b": (0.2, 0.1, 0.9, 0), "c": (-7.0, -9.0, 8.0, 1)}
    row = {
        name: dict(zip(("mean", "low", "high", "stalled"), point, strict=True))
        for name, point in points.items()
    }
    (ax,) = figures.forests("Title", {"": {"place": row}}, "label").axes
    ends = [segment[:, 0].tolist() for lines in ax.collections for segment in lines.get_segments()]
    assert sorted(ends) == [[-0.4, 0.3], [0.1, 0.9]]
    assert ax.get_xlim()[0] > -1


def test_a_method_is_drawn_alike_in_every_figure_and_unlike_all_others():
    names = list(registry.methods())
    together = drawing.looks({name: name for name in ["a_plugin", *names]})
    assert all(
        drawing.looks({"shown": f"{name},rate=2"}) == {"shown": together[name]}
        for name in ["a_plugin", *names]
    )
    assert len({(together[name]["color"], together[name]["marker"]) for name in names}) == len(
        names
    )


def test_variants_of_a_method_and_what_is_of_none_are_told_apart():
    looks = drawing.looks(
        {
            "a": "feddep,depth=1",
            "b": "feddep,depth=2",
            "c": "feddep",
            "local epochs": None,
            "rate": None,
        }
    )
    assert looks["a"] == drawing.looks({"FedDEP": "feddep"})["FedDEP"]
    assert len({look["color"] for look in looks.values()}) == 5


def test_an_outlier_sets_no_axis_and_half_of_the_numbers_do():
    def limits(means: list[float]) -> tuple[float, float]:
        rows = {str(k): {"": {"mean": mean}} for k, mean in enumerate(means)}
        (ax,) = figures.forests("Title", {"": rows}, "label").axes
        return ax.get_xlim()

    near = [0.01 * k for k in range(19)]
    assert limits([*near, -7.0])[0] > -0.1
    assert limits([*near, *[-7.0] * 19])[0] < -7


def test_curves_of_one_point_are_rows_that_tell_the_value():
    rows = [{"x": k, "curve": f"FedAvg, rounds={k}", "mean": 0.5 + k, "std": None} for k in (1, 2)]
    figure = figures.lines(
        "Title", {"": rows}, lambda row: row["x"], lambda row: row["curve"], labels=("x", "y")
    )
    (ax,) = figure.axes
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert [re.findall(r"\d", label) for label in labels] == [["1", "1"], ["2", "2"]]
    assert [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"] == [1.5, 2.5]
