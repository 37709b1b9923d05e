"""Accuracy over the privacy budget: tables by hand, the paper's numbers on its own graphs, and what is drawn."""

import dataclasses
import math
import re
from typing import Any

import pytest
from fabricated_studies import RAW, finished

from feddep.config.loading import validate
from feddep.experiment import keys
from feddep.reporting.runs import FinishedRun
from feddep.reporting.studies import tradeoff
from feddep.reporting.study_data import Study, assemble
from feddep.utils.errors import ConfigError, DataError

CONFIG = validate({**RAW, "datasets": {"cora": {}, "reddit": {}, "pubmed": {}}})


def run(method: str, best: float, seed: int = 0, dataset: str = "cora", setting: str = "feddep", **more: Any) -> FinishedRun:
    """A run on the whole graph, with what it was made with; noise is by an account that is quick to compute."""
    if "epsilon" in method:
        method += ",accountant=holds,delta=1e-09"
    one = finished(method, seed, best, clients=None, dataset=dataset, setting=setting, **more)
    return dataclasses.replace(one, result={**one.result, "specification": keys.specification(CONFIG, one.run)})


def study(*runs: FinishedRun) -> Study:
    return assemble(CONFIG, "made_up", list(runs))


def cells(text: str, line: int) -> list[str]:
    """The cells of one of a page's lines that are rows of a table, counted from 0."""
    rows = [row for row in text.splitlines() if row.startswith("|")]
    return [cell.strip() for cell in rows[line].split("|")[1:-1]]


@pytest.fixture
def made() -> Study:
    """On two datasets with different rounds; GAP is better on test nodes, VESPER on validation nodes."""
    runs = []
    for dataset, setting in (("cora", "feddep"), ("pubmed", "feddep,rounds=6")):
        for seed in range(2):
            at: dict[str, Any] = {"seed": seed, "dataset": dataset, "setting": setting, "rounds": 6 if "=6" in setting else 4}
            runs += [run("vesper_gcn,min_degree=5,epsilon=4.0", 0.73, validation=0.80, **at)]
            runs += [run("gap,epsilon=16.0", 0.79, validation=0.6, **at), run("gap,epsilon=4.0", 0.74, validation=0.7, **at)]
            runs += [run("vertical_gin", 0.9, **at), run("vertical_mlp", 0.70 + 0.05 * seed, **at)]
    return study(*runs)


def test_rows_of_the_table(made: Study) -> None:
    table = tradeoff.tables(made)["table"]
    assert list(table.columns) == [
        *("setting", "dataset", "method", "rounds", "epsilon", "seeds", "mean", "std", "last_mean", "validation_mean"),
        "undertrained",
        *("theta", "delta", "guarantee", "paper_epsilon", "bytes", "chosen", "above_mlp"),
    ]
    assert table["dataset"].tolist() == ["cora"] * 5 + ["pubmed"] * 5
    first = table[:5]
    assert [name.partition(",")[0] for name in first["method"]] == ["vertical_mlp", "vertical_gin", "gap", "gap", "vesper_gcn"]
    assert first["epsilon"].fillna(0).tolist() == [0, 0, 4, 16, 4]
    assert first["mean"].tolist() == pytest.approx([0.725, 0.9, 0.74, 0.79, 0.73])
    assert first["std"].iloc[0] == pytest.approx(0.05 / 2**0.5)
    assert first["last_mean"].tolist() == pytest.approx(first["mean"] - 0.02)
    assert table["seeds"].unique().tolist() == [2]
    # Alone in its column there is nothing to choose; else validation decides.
    assert first["chosen"].tolist() == [False, False, False, False, True]
    # Above 0.725 + 0.035 is GAP at 16 alone, and what has no noise has no mark.
    assert first["above_mlp"].tolist() == [False, False, False, True, False]
    assert first["theta"].isna().tolist() == [True, True, False, False, False]
    assert first["guarantee"].tolist()[2:] == [math.inf] * 3  # neighbours are sampled
    assert table["theta"][2] > table["theta"][3] > 0
    assert table["theta"][7] > table["theta"][2]  # six rounds, and a larger graph, in which fewer steps touch an edge


def test_the_page(made: Study) -> None:
    page = tradeoff.markdown(made, tradeoff.tables(made))
    assert page.startswith("Of these graphs none is among the paper's three: ogbn-products, Reddit")
    assert re.findall("^## (.*)$", page, re.MULTILINE) == ["Cora", "PubMed"]
    common = "δ = 1e-09; all models: rounds=4; GAP, VESPER (GCN): accountant=holds; VESPER (GCN): min_degree=5"
    assert common in page
    assert [cells(page, number) for number in (0, 2, 3, 4, 5)] == [
        ["", "ε = 4", "ε = 16", "no noise"],
        ["MLP", "", "", "0.7250 ± 0.0354"],
        ["GIN", "", "", "0.9000 ± 0.0000"],
        ["GAP", "0.7400 ± 0.0000", "0.7900 ± 0.0000 †", ""],
        ["VESPER (GCN)", "**0.7300 ± 0.0000**", "", ""],
    ]
    assert cells(page, 6) == ["", "", "ε = 4", "ε = 16"]
    assert cells(page, 9) == ["", "ε proven", "∞", "∞"]
    assert cells(page, 11)[:2] == ["VESPER (GCN)", "θ"]
    assert cells(page, 11)[3] == ""
    assert "VESPER paper" not in page
    assert not re.search(r"\b(nan|None|inf)\b", page)


def test_a_line_is_named_by_the_options_that_vary_on_its_dataset() -> None:
    runs = [run(f"vesper_gcn,min_degree={least},epsilon={epsilon}", 0.8) for least in (3, 5) for epsilon in (4.0, 8.0)]
    runs += [run("vesper_gcn,min_degree=7,epsilon=4.0", 0.8, dataset="cora,labelled=0.1")]
    runs += [run("vertical_mlp", 0.5, setting=name, validation=0.1 * k) for k, name in enumerate(["feddep", "feddep,layers=1"])]
    made = study(*runs)
    page = tradeoff.markdown(made, tradeoff.tables(made))
    assert [cells(page, number)[0] for number in (2, 3, 4, 5)] == [
        *("MLP, layers=1", "MLP, layers=2", "VESPER (GCN), min_degree=3", "VESPER (GCN), min_degree=5")
    ]
    variant = page.partition("## Cora, labelled=0.1\n")[2]
    assert "min_degree=7" in variant.partition("|")[0]
    assert cells(variant, 2)[0] == "VESPER (GCN)"


def test_the_paper_stands_beside_its_own_graphs() -> None:
    names = ("vertical_mlp", "gap,epsilon=4.0", "gap,epsilon=5.0", "vesper_gin,epsilon=4.0")
    made = study(*(run(name, 0.8, dataset=dataset) for dataset in ("cora", "reddit") for name in names))
    page = tradeoff.markdown(made, tradeoff.tables(made))
    assert page.startswith("Of these graphs Reddit is among the paper's three")
    cora, reddit = page.split("## Reddit\n")
    assert "VESPER paper" not in cora
    assert [cells(reddit, number) for number in range(9) if number != 1] == [
        ["", "", "ε = 4", "ε = 5", "no noise"],
        ["MLP", "ours", "", "", "0.8000"],
        ["MLP", "VESPER paper", "", "", "0.7107 ± 0.0025"],
        ["GAP", "ours", "**0.8000**", "0.8000", ""],
        ["GAP", "VESPER paper", "0.7684 ± 0.0171", "", ""],
        ["VESPER (GIN)", "ours", "0.8000", "", ""],
        ["VESPER (GIN), decoder=concat", "VESPER paper", "0.8234 ± 0.0157", "", ""],
        ["VESPER (GIN), decoder=gru", "VESPER paper", "0.7548 ± 0.0261", "", ""],
    ]


def test_over_the_noise_scale() -> None:
    runs = [run(f"{name},theta={theta},delta=1e-06", 0.8) for name in ("gap", "vesper_gin") for theta in (0.0, 0.5, 2.0)]
    made = study(*runs, run("vertical_gin", 0.9))
    tables = tradeoff.tables(made)
    table = tables["table"]
    assert table["epsilon"].isna().all()
    assert table["theta"].fillna(-1).tolist() == [-1, 0, 0.5, 2, 0, 0.5, 2]
    assert table["chosen"].tolist() == [False, False, True, True, False, False, False]
    page = tradeoff.markdown(made, tables)
    assert cells(page, 0) == ["", "no noise", "θ = 0.5", "θ = 2"]
    assert cells(page, 2) == ["GIN", "0.9000", "", ""]
    assert cells(page, 3) == ["GAP", "0.8000", "**0.8000**", "**0.8000**"]
    (ax,) = tradeoff.figure(made, tables).axes
    assert ax.get_xlabel() == "noise scale θ"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["no noise", "0.5", "2"]


def test_the_figure(made: Study) -> None:
    drawn = tradeoff.figure(made, tradeoff.tables(made))
    left, right, blank = (*drawn.axes, None)[:3]
    assert [ax.get_title(loc="left") for ax in (left, right)] == ["Cora", "PubMed"]
    assert blank is None
    assert left.get_xlabel() == "privacy budget ε"
    assert [label.get_text() for label in left.get_xticklabels()] == ["4", "16"]
    assert [list(line.get_ydata()) for line in left.get_lines()] == [
        pytest.approx([0.725, 0.725]),
        pytest.approx([0.9, 0.9]),
        pytest.approx([0.74, 0.79]),
        pytest.approx([0.73]),
    ]
    (legend,) = drawn.legends
    assert [entry.get_text() for entry in legend.get_texts()] == ["MLP", "GIN", "GAP", "VESPER (GCN)"]


def test_the_figure_names_one_option_if_it_tells_lines_apart() -> None:
    forms = ("encodings=false,weights=stopped", "encodings=true,weights=frozen")
    runs = [run(f"vesper_gin,{form},epsilon=4.0", 0.8) for form in forms]
    runs += [run(f"gap,encodings=true,bounding={form},epsilon=4.0", 0.8) for form in ("both", "none")]
    runs += [run("gap,bounding=none,epsilon=4.0", 0.8)]
    made = study(*runs)
    (legend,) = tradeoff.figure(made, tradeoff.tables(made)).legends
    names = [entry.get_text() for entry in legend.get_texts()]
    assert sorted(names[-2:]) == ["VESPER (GIN), encodings=false", "VESPER (GIN), encodings=true"]
    assert [name.count("=") for name in names[:3]] == [2, 2, 2]  # no option alone tells GAP's three lines apart
    assert "weights=stopped" in tradeoff.markdown(made, tradeoff.tables(made))


def test_the_reference_is_the_mlp_that_is_best_on_validation() -> None:
    runs = [run(f"vertical_mlp,encoder_layers={maps}", best, validation=1 - best) for maps, best in ((1, 0.7), (2, 0.9))]
    made = study(*runs, run("gap,epsilon=4.0", 0.8))
    tables = tradeoff.tables(made)
    assert tables["table"]["above_mlp"].tolist() == [False, False, True]
    (ax,) = tradeoff.figure(made, tables).axes
    assert [list(line.get_ydata()) for line in ax.get_lines()] == [[0.7, 0.7], [0.8]]


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"^studies\.made_up has runs with epsilon and runs with theta; .* over one of them$"):
        tradeoff.tables(study(run("gap,epsilon=4.0", 0.8), run("gap,theta=0.5", 0.8)))
    with pytest.raises(ConfigError, match="the method global is none of VESPER's paper"):
        tradeoff.tables(study(run("global", 0.8)))
    with pytest.raises(DataError, match="gap/seed0 does not say with what 'specification' it was made; run it again"):
        tradeoff.tables(study(finished("gap", 0, 0.8, clients=None)))
