"""Accuracy over the guarantee: what stands beside each point, and what is drawn."""

import dataclasses
import math

import pytest
from fabricated_studies import RAW, finished, study
from hypothesis import given
from hypothesis import strategies as st

from feddep.config.loading import validate
from feddep.experiment import keys
from feddep.privacy.accountant import one_sampling
from feddep.privacy.profile import exact_guarantee
from feddep.reporting.runs import FinishedRun
from feddep.reporting.studies import privacy
from feddep.reporting.study_data import Study
from feddep.utils.errors import DataError

CONFIG = validate(RAW)


def specified(one: FinishedRun) -> FinishedRun:
    """The run with what it was made with, as results of the DAG have it."""
    return dataclasses.replace(one, result={**one.result, "specification": keys.specification(CONFIG, one.run)})


def run(
    method: str, best: float, clients: int | None, seed: int = 0, setting: str = "feddep", dataset: str = "cora"
) -> FinishedRun:
    return specified(finished(method, seed, best, clients=clients, setting=setting, dataset=dataset))


@pytest.fixture
def figure_5() -> Study:
    """Two of its methods with the paper's σ, and one of these with Table 2's."""
    runs = []
    for clients, sigma in ((3, 4.2), (5, 2.1), (10, 0.4)):
        for seed in range(2):
            runs.append(run("feddep", 0.80 + 0.02 * seed, clients, seed))
            runs.append(run(f"feddep_wo_nfdp,sigma={sigma}", 0.70, clients, seed))
            runs.append(run("feddep_wo_nfdp", 0.60, clients, seed))
    return study(*runs)


def test_the_published_pairs_are_those_of_figure_5(figure_5: Study) -> None:
    table = privacy.tables(figure_5)["table"]
    assert table["seeds"].tolist() == [2] * 9
    for clients, degree, epsilon, sigma in ((3, 15, 0.4, 4.2), (5, 10, 0.6, 2.1), (10, 3, 1.4, 0.4)):
        here = table[table["clients"] == clients]
        assert here["epsilon"].round(1).tolist() == [epsilon] * 3
        assert here["epsilon"].tolist() == pytest.approx([one_sampling(degree, 5).epsilon] * 3)
        assert here["delta"].tolist() == pytest.approx([one_sampling(degree, 5).delta] * 3)
        assert set(here["degree_D"]) == {degree}
        assert set(here["paper_sigma"]) == {sigma}
        assert here["noise_sigma"].dropna().tolist() == pytest.approx([2.0, sigma]) or sigma < 2
    assert table.loc[table["clients"] == 3, "exact_delta"].tolist() == pytest.approx([1 / 3] * 3)
    after = table.loc[table["clients"] == 3, "exact_log10_rest"].iloc[0]
    assert after == pytest.approx(2 * 4 * math.log10(2 / 3))  # two hops in each of RAW's four rounds
    assert table["samplings"].unique().tolist() == [8]


def test_the_border_is_where_the_published_delta_is_too_small() -> None:
    runs = [run("fedavg", 0.8, 3, setting=f"feddep,fanout={fanout}") for fanout in (14, 15)]
    table = privacy.tables(study(*runs))["table"]
    assert (table["exact_delta"] > table["delta"]).all()
    assert table["exact_delta"].tolist() == pytest.approx([max(exact_guarantee(n, d).delta for n in (14, 15)) for d in (14, 15)])


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True), st.sampled_from([0.1, 0.5, 1.0]))
def test_epsilon_grows_with_what_is_drawn_and_kept(fanouts: list[int], rate: float) -> None:
    """Within one law of drawing; and r lowers only what is published."""
    runs = [run(f"feddep,bernoulli_rate={rate}", 0.8, 3, setting=f"feddep,fanout={fanout}") for fanout in sorted(fanouts)]
    table = privacy.tables(study(*runs, run("feddep", 0.8, 3)))["table"].sort_values("fanout_d")
    ours = table[table["bernoulli_r"] == rate]
    for with_replacement in (True, False):
        law = ours[(ours["fanout_d"] >= 15) == with_replacement]
        assert law["epsilon"].is_monotonic_increasing
    assert not table[["epsilon", "delta", "exact_delta"]].isna().any(axis=None)
    assert (ours["delta"] <= rate).all()
    assert (ours["exact_delta"] >= [one_sampling(15, int(d)).delta * (1 - 1e-12) for d in ours["fanout_d"]]).all()


def test_markdown(figure_5: Study) -> None:
    text = privacy.markdown(figure_5, privacy.tables(figure_5))
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    assert lines[0] == ["M", "d", "D", "published ε", "δ", "exact δ", "all", "method", "σ", "accuracy"]
    assert lines[2][:7] == ["3", "5", "15", "0.3747", "0.3333", "0.3333", "0.961"]
    assert ["FedDEP", "", "0.8100 ± 0.0141"] in [line[7:] for line in lines]
    noisy = {(line[0], line[8]) for line in lines[2:] if line[8]}
    assert noisy == {("3", "4.2"), ("3", "2 \\*"), ("5", "2.1"), ("5", "2 \\*"), ("10", "0.4"), ("10", "2 \\*")}
    assert "nan" not in text.lower()


def test_what_has_no_guarantee_is_listed_and_not_drawn() -> None:
    made = study(run("global", 0.9, None), run("fedavg", 0.8, 20), run("fedavg", 0.8, 3))
    tables = privacy.tables(made)
    assert tables["table"]["epsilon"].isna().tolist() == [True, False, True]
    text = privacy.markdown(made, tables)
    assert "Global" in text
    assert "nan" not in text.lower()
    (ax,) = privacy.figure(made, tables).axes
    assert len(ax.get_xticks()) == 1


def test_without_any_guarantee_it_is_one_sentence() -> None:
    with pytest.raises(DataError, match=r"no run of the study made_up has a guarantee .* for 3, 5, 10 clients only"):
        privacy.tables(study(run("global", 0.9, None), run("fedavg", 0.8, 20)))


def test_a_result_that_does_not_say_what_it_is_of_is_one_sentence() -> None:
    with pytest.raises(
        DataError, match=r"the run feddep/cora/m5/fedavg/seed0 does not say with what 'specification' it was made"
    ):
        privacy.tables(study(finished("fedavg", 0, 0.8)))


def test_figure(figure_5: Study) -> None:
    drawn = privacy.figure(figure_5, privacy.tables(figure_5))
    (ax,) = drawn.axes
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        "ε = 0.375\nδ = 0.333\nM = 3",
        "ε = 0.606\nδ = 0.5\nM = 5",
        "ε = 1.44\nδ = 0.868\nM = 10",
    ]
    assert ax.get_xlabel() == "published ε of one sampling, and its exact δ; d = 5"
    points = [(round(float(line.get_xdata()[0])), line.get_ydata()[0], line.get_markerfacecolor()) for line in ax.get_lines()]
    assert sorted(place for place, _, _ in points) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert {accuracy for _, accuracy, face in points if face == "white"} == {0.6}  # not the paper's σ
    (legend,) = drawn.legends
    assert [entry.get_text() for entry in legend.get_texts()] == ["FedDEP w/o NFDP", "FedDEP", "another σ than the paper's"]


def test_a_rate_is_on_the_axis() -> None:
    made = study(*(run(name, 0.8, 3) for name in ("feddep,bernoulli_rate=0.5", "feddep")))
    (ax,) = privacy.figure(made, privacy.tables(made)).axes
    assert [label.get_text().splitlines()[2:] for label in ax.get_xticklabels()] == [["r = 0.5"], ["r = 1"]]
    assert ax.get_xlabel().endswith("exact δ; M = 3, d = 5")
