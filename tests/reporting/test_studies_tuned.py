"""Tuned studies: what is chosen, with equally many trials, and differences by hand."""

import dataclasses

import numpy as np
import pytest
from fabricated_studies import finished, study

from feddep.reporting.studies import tuned
from feddep.reporting.study_data import Study
from feddep.utils.errors import DataError

SLOW, FAST = "feddep,learning_rate=0.03", "feddep,learning_rate=0.3"
TRIALS = [
    finished("fedavg", 9, 0.9, setting=SLOW, validation=0.6),
    finished("fedavg", 9, 0.1, setting=FAST, validation=0.7),
    finished("feddep,depth=1", 9, 0.9, setting=SLOW, validation=0.8),
    finished("feddep,depth=2", 9, 0.1, setting=SLOW, validation=0.5),
]
DIFFERENCES = [0.02, 0.04, 0.03]


def finals(spelled: str = "feddep,depth=1", setting: str = SLOW):
    runs = []
    for seed, difference in enumerate(DIFFERENCES):
        runs += [finished("fedavg", seed, 0.5, setting=FAST), finished(spelled, seed, 0.5 + difference, setting=setting)]
    return runs


def made(*runs) -> Study:
    return dataclasses.replace(study(*runs), search_seeds=(9,))


def test_validation_chooses_and_test_nodes_do_not():
    choices = tuned.tables(made(*TRIALS, *finals()))["choices"].set_index("method")
    assert choices["trials"].tolist() == [2, 2]
    assert choices.loc["fedavg", ["chosen_setting", "chosen_method"]].tolist() == [FAST, "fedavg"]
    assert choices.loc["feddep", ["chosen_setting", "chosen_method"]].tolist() == [SLOW, "feddep,depth=1"]
    assert choices.loc["feddep", ["validation", "median_validation"]].tolist() == pytest.approx([0.8, 0.65])


def test_differences_are_paired_across_settings():
    study_of = made(*TRIALS, *finals())
    table = tuned.tables(study_of)["table"]
    assert table["method"].tolist() == ["fedavg", "feddep"]
    row = table.iloc[1]
    assert row["seeds"] == 3
    assert row["mean_difference"] == pytest.approx(np.mean(DIFFERENCES))
    assert row["mean"] == pytest.approx(0.5 + np.mean(DIFFERENCES))
    assert np.isnan(table.iloc[0]["mean_difference"])
    page = tuned.markdown(study_of, tuned.tables(study_of))
    assert "Trials for each method: 2 on Cora." in page
    assert "+0.0300" in page


def test_another_dataset_may_have_another_number_of_trials():
    more = [finished(spelled, 9, 0.5, setting=FAST, dataset="pubmed") for spelled in ("fedavg", "feddep")]
    study_of = made(*TRIALS, *more, *finals())
    tables = tuned.tables(study_of)
    assert tables["choices"].set_index(["method", "dataset"])["trials"].to_dict() == {
        **{("fedavg", "cora"): 2, ("feddep", "cora"): 2},
        **{("fedavg", "pubmed"): 1, ("feddep", "pubmed"): 1},
    }
    assert "Trials for each method: 2 on Cora; 1 on PubMed." in tuned.markdown(study_of, tables)


def test_the_whole_graph_stands_beside_every_number_of_clients():
    more = [finished("global", seed, 0.6, setting=FAST, clients=None) for seed in (9, 0, 1, 2)]
    again = [finished("global", 9, 0.6, setting=SLOW, clients=None, validation=0.1)]
    table = tuned.tables(made(*TRIALS, *more, *again, *finals()))["table"].set_index("method")
    assert table.loc["global", "clients"] == 5
    assert table.loc["global", "mean_difference"] == pytest.approx(0.1)


def test_undertrained_rows_are_marked():
    again = [finished("halo", 9, 0.5, setting=setting) for setting in (SLOW, FAST)]
    late = [finished("halo", seed, 0.5, setting=SLOW, rounds=40) for seed in range(3)]  # best at round 39 of 40
    study_of = made(*TRIALS, *again, *finals(), *late)
    tables = tuned.tables(study_of)
    assert tables["table"].set_index("method")["undertrained_runs"].to_dict() == {"fedavg": 0.0, "feddep": 0.0, "halo": 1.0}
    accuracies, differences = tuned.markdown(study_of, tables).split("## Difference")
    for part in (accuracies, differences):
        assert [line.split()[1] for line in part.splitlines() if "‡" in line] == ["Halo"]
    trained = tables["table"].assign(undertrained=0.0)
    for table, expected in ((tables["table"], True), (trained, False)):
        drawn = tuned.figure(study_of, {**tables, "table": table})
        assert ("‡" in [text.get_text() for text in drawn.axes[0].texts]) == expected
        assert ("most runs undertrained" in [text.get_text() for text in drawn.legends[0].get_texts()]) == expected


def test_unequal_numbers_of_trials_are_an_error():
    with pytest.raises(
        DataError, match=r"studies\.made_up has unequal numbers of trials \(fedavg on cora: 2, feddep on cora: 1\)"
    ):
        tuned.tables(made(*TRIALS[:3], *finals()))


@pytest.mark.parametrize(("spelled", "setting"), [("feddep,depth=2", SLOW), ("feddep,depth=1", FAST)])
def test_a_run_of_what_was_not_chosen_is_an_error(spelled: str, setting: str):
    with pytest.raises(DataError, match=r"but its search chose feddep,depth=1 with feddep,learning_rate=0\.03"):
        tuned.tables(made(*TRIALS, *finals(spelled, setting)))


def test_a_run_without_a_trial_is_an_error():
    with pytest.raises(DataError, match=r"runs halo with .* but its search has no trial"):
        tuned.tables(made(*TRIALS, *finals(), finished("halo", 0, 0.5)))


def test_the_figure_has_a_panel_a_place_and_an_arrow_for_what_is_far_below():
    local = [finished("local", 9, 0.3, setting=setting) for setting in (SLOW, FAST)]
    local += [finished("local", seed, 0.1 + 0.01 * seed, setting=SLOW) for seed in range(3)]
    study_of = made(*TRIALS, *local, *finals())
    (axes,) = tuned.figure(study_of, tuned.tables(study_of)).axes
    assert axes.get_title() == "Cora, M=5"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Local", "FedDEP"]
    low, high = axes.get_xlim()
    assert -tuned.FAR < low < 0.02 < 0.04 < high < 0.1
    drawn = {tuple(line.get_xydata()[0]): line.get_marker() for line in axes.lines if len(line.get_xydata()) == 1}
    assert drawn[low, 0] == "<"
    assert [place for place, marker in drawn.items() if marker == "o" and place[1] == 1] == [(pytest.approx(0.03), 1)]


def test_the_figure_has_six_panels_in_a_row_and_names_at_the_left_of_each():
    runs = [
        finished(spelled, seed, best, setting=setting, clients=clients)
        for clients in range(2, 9)
        for seed in range(2)
        for spelled, best, setting in (("fedavg", 0.5, FAST), ("feddep,depth=1", 0.51 + 0.01 * seed, SLOW))
    ]
    study_of = made(*TRIALS, *runs)
    panels = [axes for axes in tuned.figure(study_of, tuned.tables(study_of)).axes if axes.axison]
    assert [axes.get_title() for axes in panels] == [f"Cora, M={clients}" for clients in range(2, 9)]
    assert [axes.get_subplotspec().rowspan.start for axes in panels] == [0] * 6 + [1]
    named = [[label.get_text() for label in axes.get_yticklabels()] for axes in panels]
    assert [any(names) for names in named] == [True] + [False] * 5 + [True]


def test_the_figure_is_drawn_where_all_are_far_below():
    trials = [*TRIALS[:2], *(finished("local", 9, 0.3, setting=setting) for setting in (SLOW, FAST))]
    runs = [
        run
        for seed in range(3)
        for run in (finished("fedavg", seed, 0.5, setting=FAST), finished("local", seed, 0.1, setting=SLOW))
    ]
    study_of = made(*trials, *runs)
    (axes,) = tuned.figure(study_of, tuned.tables(study_of)).axes
    low, high = axes.get_xlim()
    assert low < -0.4 < high


def test_a_difference_is_marked_where_the_reference_was_still_rising_on_the_same_dataset():
    more = [finished(spelled, 9, 0.5, setting=FAST, dataset="citeseer") for spelled in ("fedavg", "feddep")]
    on_another = [
        finished(spelled, seed, 0.5, setting=FAST, dataset="citeseer") for seed in range(3) for spelled in ("fedavg", "feddep")
    ]
    trials = [each for each in TRIALS if each.run.setting == FAST or each.run.method == "feddep,depth=1"]
    rising = [
        dataclasses.replace(each, result={**each.result, "best_round": 4}) if each.run.method == "fedavg" else each
        for each in finals()
    ]
    table = tuned.tables(made(*trials, *more, *rising, *on_another))["table"].set_index(["dataset", "method"])
    assert table["undertrained"].to_dict() == {
        ("cora", "fedavg"): 1,
        ("cora", "feddep"): 1,
        ("citeseer", "fedavg"): 0,
        ("citeseer", "feddep"): 0,
    }
