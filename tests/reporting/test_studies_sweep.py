"""Sweeps: the value chosen on validation, the published sweep over C, and what is drawn."""

import pytest
from fabricated_studies import finished, study

from feddep.reporting.studies import sweep
from feddep.reporting.study_data import Study


@pytest.fixture
def over_c() -> Study:
    """C = 3 and 15 at M = 5: validation favours 3, test accuracy 15; and FedAvg, which has no prototypes."""
    runs = [finished("fedavg", seed, 0.80, validation=0.99) for seed in range(2)]
    for seed in range(2):
        runs.append(finished("feddep,prototypes=3", seed, 0.81 + 0.02 * seed, validation=0.90))
        runs.append(finished("feddep,prototypes=15", seed, 0.89, validation=0.85))
    return study(*runs)


def test_columns(over_c: Study) -> None:
    table = sweep.tables(over_c)["table"]
    assert list(table.columns) == [
        *("setting", "dataset", "clients", "method", "prototypes"),
        *(
            "seeds",
            "mean",
            "std",
            "last_mean",
            "last_std",
            "validation_mean",
            "undertrained",
            "bytes",
            "seconds",
            "seconds_before",
        ),
        *("chosen", "paper_feddep_mean", "paper_feddep_std"),
    ]
    three = table[table["prototypes"] == 3].iloc[0]
    assert three[["mean", "std", "last_mean"]].tolist() == pytest.approx([0.82, 0.02 / 2**0.5, 0.80])


def test_the_value_is_chosen_on_validation_never_on_test(over_c: Study) -> None:
    table = sweep.tables(over_c)["table"]
    assert table.loc[table["chosen"], "prototypes"].tolist() == [3]
    assert "**0.8200 ± 0.0141**" in sweep.markdown(over_c, {"table": table})
    assert sweep.markdown(over_c, {"table": table}).count("**") == 2


def test_the_choice_is_made_for_each_dataset_and_number_of_clients() -> None:
    """A share of labels is given, a setting's option is chosen, the first of equals."""
    runs = [
        finished("fedavg", 0, 0.8, dataset=data, clients=m, setting=setting, validation=validation)
        for data, m, setting, validation in [
            ("cora", 5, "feddep", 0.7),
            ("cora", 5, "feddep,fanout=1", 0.7),
            ("cora", 10, "feddep", 0.7),
            ("cora", 10, "feddep,fanout=1", 0.8),
            ("cora,labelled=0.1", 5, "feddep", 0.5),
            ("cora,labelled=0.1", 5, "feddep,fanout=1", 0.6),
        ]
    ]
    table = sweep.tables(study(*runs))["table"]
    chosen = table.loc[table["chosen"], ["labelled", "clients", "fanout"]]
    assert chosen.values.tolist() == [["null", 5, 1], ["null", 10, 1], [0.1, 5, 1]]
    assert table["setting"].unique().tolist() == ["feddep"]


def test_the_paper_stands_beside_its_own_sweep(over_c: Study) -> None:
    table = sweep.tables(over_c)["table"]
    assert table["paper_feddep_mean"].tolist() == [0.8555, 0.8670, 0.8883]  # FedDEP, Table 3: FedAvg, C = 3, C = 15
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in sweep.markdown(over_c, {"table": table}).splitlines()[2:]
    ]
    assert lines == [
        ["", "prototypes", "", "M=5"],
        ["-" * len(cell) for cell in ("FedAvg", "prototypes", "FedDEP paper", "**0.8200 ± 0.0141**")],
        ["FedAvg", "", "ours", "0.8000 ± 0.0000"],
        ["", "", "FedDEP paper", "0.8555 ± 0.014"],
        ["FedDEP", "3", "ours", "**0.8200 ± 0.0141**"],
        ["", "", "FedDEP paper", "0.8670 ± 0.005"],
        ["FedDEP", "15", "ours", "0.8900 ± 0.0000"],
        ["", "", "FedDEP paper", "0.8883 ± 0.011"],
    ]


def test_another_sweep_is_not_beside_a_paper() -> None:
    """Over another option, or over one of the same name that is NeighGen's and not the setting's."""
    for names in [
        [f"feddep,prototypes=3,depth={depth}" for depth in (1, 3)],
        [f"fedsage_plus,generator_local_epochs={epochs}" for epochs in (1, 3)],
    ]:
        table = sweep.tables(study(*(finished(name, 0, 0.8, dataset="pubmed") for name in names)))["table"]
        assert not [column for column in table if column.startswith("paper_")]


def test_fedsage_stands_beside_its_sweep_over_the_batch_size() -> None:
    """FedSage, Appendix D.3, Table 3: PubMed with 5 clients."""
    settings = ["feddep,batch_size=1", "feddep,batch_size=16", "feddep,batch_size=8"]
    runs = [finished("fedavg", 0, 0.8, dataset="pubmed", setting=setting) for setting in settings]
    runs += [finished("global", 0, 0.8, dataset="pubmed", clients=None, setting=settings[0])]
    runs += [finished("fedavg", 0, 0.8, setting=settings[1])]  # Cora is not in it
    table = sweep.tables(study(*runs))["table"].set_index(["dataset", "method", "batch_size"])["paper_fedsage_mean"]
    assert table["pubmed", "fedavg", 1] == 0.8682
    assert table["pubmed", "fedavg", 16] == 0.8733
    assert table["pubmed", "global", 1] == 0.8751
    assert table.isna().sum() == 2
    page = sweep.markdown(study(*runs), sweep.tables(study(*runs)))
    assert "| FedSage paper | " in page
    assert "0.8733 ± 0.0018" in page
    assert page.count("FedSage paper") == 3


def test_fedsage_stands_beside_the_shared_generator() -> None:
    """FedSage, Appendix D.2, Table 2; without the shared one it would be another table, and nothing stands there."""
    runs = [finished(name, 0, 0.8, clients=3) for name in ("fedavg", "fedsage_plus_shared", "fedsage_plus")]
    made = study(*runs)
    table = sweep.tables(made)["table"].set_index("method")
    assert table["paper_fedsage_mean"].to_dict() == {"fedavg": 0.8656, "fedsage_plus_shared": 0.8619, "fedsage_plus": 0.8686}
    assert "0.8619 ± 0.0034" in sweep.markdown(made, sweep.tables(made))
    assert "paper_fedsage_mean" not in sweep.tables(study(*runs[::2]))["table"]


def test_figure(over_c: Study) -> None:
    drawn = sweep.figure(over_c, sweep.tables(over_c))
    (ax,) = drawn.axes
    assert ax.get_title(loc="left") == "Cora, M = 5"
    assert ax.get_xlabel() == "prototypes"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["3", "15"]
    flat, curve = (list(line.get_ydata()) for line in ax.get_lines())
    assert flat == [0.8, 0.8]
    assert curve == pytest.approx([0.82, 0.89])
    (bars,) = ax.collections
    low, high = bars.get_segments()[0][:, 1]
    assert high - low == pytest.approx(2 * 0.02 / 2**0.5)
    (legend,) = drawn.legends
    assert legend.get_title().get_text() == "A study"
    assert [entry.get_text() for entry in legend.get_texts()] == ["FedAvg", "FedDEP"]


def test_without_options_the_axis_is_the_number_of_clients() -> None:
    runs = [finished("fedavg", 0, 0.8, clients=m) for m in (10, 5)] + [finished("global", 0, 0.9, clients=None)]
    made = study(*runs)
    tables = sweep.tables(made)
    (ax,) = sweep.figure(made, tables).axes
    assert [label.get_text() for label in ax.get_xticklabels()] == ["5", "10"]
    assert [len(line.get_xdata()) for line in ax.get_lines()] == [2, 2]  # Global's is horizontal
    header, _, first, second = sweep.markdown(made, tables).splitlines()[2:]
    assert [cell.strip() for cell in header.split("|")[1:-1]] == ["", "whole graph", "M=5", "M=10"]
    assert [cell.strip() for cell in first.split("|")[1:-1]] == ["Global", "0.9000", "", ""]
    assert [cell.strip() for cell in second.split("|")[1:-1]] == ["FedAvg", "", "0.8000", "0.8000"]


def test_what_owners_classify_stands_beside_where_all_runs_measured_it() -> None:
    runs = [finished("fedavg", seed, 0.8, own=0.6 + 0.1 * seed) for seed in range(2)]
    measured = study(*runs)
    table = sweep.tables(measured)["table"]
    assert table["own_mean"].tolist() == pytest.approx([0.65])
    assert "0.8000 ± 0.0000; own 0.6500" in sweep.markdown(measured, {"table": table})
    some = sweep.tables(study(*runs, finished("fedavg", 2, 0.8)))["table"]
    assert "own_mean" not in some


def test_what_all_variants_share_stands_below_the_table_and_not_in_each_line() -> None:
    shared = "scale=authors"
    runs = [finished("fedavg", 0, 0.8)]
    runs += [finished(f"feddep,{shared},prototypes={count}", 0, 0.8) for count in (3, 15)]
    page = sweep.markdown(study(*runs), sweep.tables(study(*runs)))
    assert page.count("scale") == 1
    assert "\nFedDEP: `scale=authors`.\n" in page
    other = study(*runs, finished("feddep,scale=paper,prototypes=3", 0, 0.8))
    assert "FedDEP: " not in sweep.markdown(other, sweep.tables(other))
