"""Figures show the numbers of the tables, and the same results give the same bytes."""

import itertools
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from fabricated import Results
from matplotlib.figure import Figure
from PIL import Image

from feddep.reporting import drawing, files, labels, main_figures, runs
from feddep.reporting.results import collect


def points(ax, colour: str) -> set[tuple[float, float]]:
    """Coordinates of the markers of a colour."""
    lines = [line for line in ax.get_lines() if line.get_color() == colour and line.get_marker() not in ("None", "")]
    return {(round(float(line.get_xdata()[0]), 4), round(float(line.get_ydata()[0]), 4)) for line in lines}


def texts(figure: Figure) -> set[str]:
    legends = itertools.chain.from_iterable(legend.get_texts() for legend in figure.legends)
    return {text.get_text() for text in [*legends, *(text for ax in figure.axes for text in ax.texts)]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accuracy_feddep", "curves_feddep", "partitions"])
def test_same_results_same_bytes(results: Results, tmp_path, name: str) -> None:
    written = []
    for attempt in ("one", "two"):
        figure = collect(results.config).figures()[name]
        files.write(tmp_path / attempt, {name: figure}, "figures")
        written.append([(tmp_path / attempt / f"{name}.{suffix}").read_bytes() for suffix in ("svg", "png")])
    assert written[0] == written[1]
    vector, raster = (tmp_path / "one" / f"{name}.{suffix}" for suffix in ("svg", "png"))
    assert ElementTree.parse(vector).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert b"<dc:date>" not in vector.read_bytes()
    with Image.open(raster) as image:
        assert np.asarray(image.convert("L")).std() > 5  # something is drawn


def test_svg_paths_are_short_and_glyphs_unharmed(results: Results) -> None:
    figure = collect(results.config).figures()["partitions"]
    text = drawing.svg(figure)
    paths = re.findall(r' d="([^"]*)"', text)
    assert paths
    assert not any(re.search(r"\.\d{3}", path) for path in paths)
    assert re.search(r"scale\(0\.015625\)", text)


def test_accuracy_shows_ours_and_the_papers(results: Results) -> None:
    figure = main_figures.accuracy(collect(results.config).accuracy)
    five, ten = figure.axes
    assert five.get_title(loc="left") == "Cora, M = 5"
    ours, feddep, fedsage = (style["color"] for style in main_figures.SOURCES.values())
    # Rows from above: Global 0, Local 1, FedAvg 2; sources a quarter of a row apart.
    assert points(five, ours) == {(0.89, -0.25), (0.86, 1.75)}
    assert points(five, feddep) == {(0.8955, 0.0), (0.8555, 2.0)}
    assert points(ten, fedsage) == {(0.8701, 0.25), (0.8626, 2.25)}
    assert {text.get_text() for text in five.texts} == {"◂ 0.510", "◂ 0.449", "◂ 0.443"}  # Local, far below
    assert texts(figure) >= {"ours", "FedDEP paper", "FedSage paper", "our FedAvg", "left of the scale"}
    low, high = five.get_xlim()
    assert low < 0.8555 - 0.014  # the error bars fit
    assert high > 0.89 + 0.01


def test_numbers_off_the_scale_do_not_cover_one_another(results: Results) -> None:
    figure = main_figures.accuracy(collect(results.config).accuracy)
    figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda box: box.x0)
    assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(boxes))


def test_the_axis_speaks_of_spread_only_where_there_is_one(tmp_path) -> None:
    def label(**made) -> str:
        figure = main_figures.accuracy(collect(Results(tmp_path / str(len(made)), **made).write().config).accuracy)
        return figure.axes[-1].get_xlabel()

    assert label() == "test accuracy, mean ± standard deviation"
    assert label(seeds=(0,)) == "test accuracy; bars: the papers' standard deviations"
    tiny = {"tiny": {"features": "raw", "synthetic": {}}}
    assert label(seeds=(0,), datasets=tiny) == "test accuracy"


def test_accuracy_without_published_numbers(tmp_path) -> None:
    results = Results(tmp_path, datasets={"tiny": {"features": "raw", "synthetic": {}}}, clients=(3,), methods=("local",)).write()
    figure = main_figures.accuracy(collect(results.config).accuracy)
    assert points(figure.axes[0], main_figures.SOURCES["ours"]["color"]) == {(0.51, 0.0)}
    assert texts(figure) == {"ours"}


def test_settings_have_figures_of_their_own(tmp_path) -> None:
    found = collect(Results(tmp_path, settings=("one", "two"), clients=(3,)).write().config)
    figures = found.figures()
    assert list(figures) == ["accuracy_one", "accuracy_two", "curves_one", "curves_two", "partitions"]
    assert all([ax.get_title(loc="left") for ax in figure.axes] == ["Cora, M = 3"] for figure in list(figures.values())[:4])


def test_curves_are_means_with_their_range(results: Results) -> None:
    figure = main_figures.curves(runs.curves(collect(results.config).finished))
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["Cora, M = 5", "Cora, M = 10"]
    five, _ = figure.axes
    assert five.get_ylabel() == "test accuracy"
    fedavg = five.get_lines()[2]
    assert fedavg.get_ydata() == pytest.approx([0.56, 0.76, 0.86, 0.84])
    band = five.collections[2].get_paths()[0].vertices
    at_best = band[band[:, 0] == 3][:, 1]
    assert [at_best.min(), at_best.max()] == pytest.approx([0.85, 0.87])
    assert texts(figure) == {"Global", "Local", "FedAvg"}


def test_a_legend_stays_within_the_figure() -> None:
    names = [f"FedSage+, generator_local_epochs={k}, generator_federated_epochs=100, scale=authors" for k in range(3)]
    figure, _ = drawing.panels(1, 1, (4.0, 3.0))
    drawing.head(figure, "A title that is longer than the figure is wide, " * 2, [drawing.sample(name) for name in names])
    (legend,) = figure.legends
    assert legend.get_window_extent().width <= figure.bbox.width
    assert [" ".join(text.get_text().split()) for text in legend.get_texts()] == names


def test_many_rows_of_a_forest_stand_in_two_columns() -> None:
    rows = [f"row {k}" for k in range(9)]
    figure = drawing.forests(rows, {"one": [{"mean_difference": float(k)} for k in range(9)]}, {"one": "#000000"}, "difference")
    left, right = figure.axes
    assert [label.get_text() for ax in (left, right) for label in ax.get_yticklabels()] == rows
    assert left.get_xlim() == right.get_xlim()
    assert left.get_ylim() == right.get_ylim()


def test_what_all_variants_share_does_not_tell_them_apart() -> None:
    names = ["gap,epsilon=8.0,degree=5", "gap,epsilon=8.0,degree=9", "vfgnn,epsilon=8.0", "fedavg", "fedavg,prototypes=3"]
    assert list(labels.distinguishing(names).values()) == [
        "gap,degree=5",
        "gap,degree=9",
        "vfgnn",
        "fedavg",
        "fedavg,prototypes=3",
    ]


def test_line_styles_differ() -> None:
    styles = drawing.line_styles(["fedavg", "brand_new", "newer"])
    assert len(set(styles.values())) == len(styles)


def test_partitions_show_missing_edges(results: Results) -> None:
    figure = main_figures.partitions(collect(results.config).partitions)
    (ax,) = figure.axes
    ours, feddep, fedsage = (style["color"] for style in main_figures.SOURCES.values())
    assert points(ax, ours) == {(-0.2, 510.0), (0.8, 1010.0)}
    assert points(ax, feddep) == {(0.0, 552.0), (1.0, 912.0)}
    assert points(ax, fedsage) == {(0.2, 589.0), (1.2, 929.0)}
    assert [label.get_text() for label in ax.get_xticklabels()] == ["M = 5", "M = 10"]
    assert ax.get_ylim()[0] == 0


def test_no_partition_no_numbers(tmp_path) -> None:
    results = Results(tmp_path, methods=("global",)).write()
    figure = main_figures.partitions(collect(results.config).partitions)
    assert texts(figure) == {"ours"}
    assert not figure.axes[0].axison
