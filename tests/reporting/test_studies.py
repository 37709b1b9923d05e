"""Each kind of study: its numbers by hand, and that it makes its files."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy import stats

from fabricated import (
    RAW,
    T_95_TWO_DEGREES,
    Finished,
    finished,
    publish,
    row,
    study,
    table,
    two_sided_p,
)
from feddep.config.loading import validate
from feddep.experiment import plan
from feddep.reporting import output, studies
from feddep.reporting.load import Study, assemble
from feddep.reporting.studies import paired, pooled, sweep, tuned
from feddep.utils.errors import ConfigError, DataError
from studies.feddep.kinds import grid, headroom, recovery
from studies.field.kinds import settings


def over_c() -> Study:
    """C = 3 and 15 at M = 5: validation favours 3, test accuracy 15; and FedAvg, which has no
    prototypes.
    """
    runs = [finished("fedavg", seed, 0.80, validation=0.99) for seed in range(2)]
    for seed in range(2):
        runs.append(finished("feddep,prototypes=3", seed, 0.81 + 0.02 * seed, validation=0.90))
        runs.append(finished("feddep,prototypes=15", seed, 0.89, validation=0.85))
    return study(*runs)


def test_a_sweep_chooses_on_validation_and_stands_beside_the_papers() -> None:
    table = sweep.tables(over_c())["table"]
    three = row(table, prototypes=3)
    assert [three["mean"], three["std"], three["last_mean"]] == pytest.approx(
        [0.82, 0.02 / 2**0.5, 0.80]
    )
    assert table.loc[table["chosen"], "prototypes"].tolist() == [3]
    # FedDEP, Table 3: FedAvg, C = 3, C = 15.
    assert table["paper_feddep_mean"].tolist() == [
        0.8555,
        0.8670,
        0.8883,
    ]


def test_a_sweep_chooses_for_each_dataset_and_number_of_clients() -> None:
    """A share of labels is given, a setting's option is chosen, the first of equals."""
    places = [
        ("cora", 5, "feddep", 0.7),
        ("cora", 5, "feddep,fanout=1", 0.7),
        ("cora", 10, "feddep", 0.7),
    ]
    places += [("cora", 10, "feddep,fanout=1", 0.8), ("cora,labelled=0.1", 5, "feddep", 0.5)]
    places += [("cora,labelled=0.1", 5, "feddep,fanout=1", 0.6)]
    runs = [
        finished("fedavg", 0, 0.8, dataset=data, clients=m, setting=setting, validation=v)
        for data, m, setting, v in places
    ]
    table = sweep.tables(study(*runs))["table"]
    chosen = table.loc[table["chosen"], ["labelled", "clients", "fanout"]]
    assert chosen.values.tolist() == [["null", 5, 1], ["null", 10, 1], [0.1, 5, 1]]


def test_only_a_papers_own_sweep_stands_beside_it() -> None:
    settings = ["feddep,batch_size=1", "feddep,batch_size=16", "feddep,batch_size=8"]
    raw = {**RAW, "datasets": {**RAW["datasets"], "pubmed": {}}}
    runs = [finished("fedavg", 0, 0.8, dataset="pubmed", setting=setting) for setting in settings]
    found = sweep.tables(study(*runs, finished("fedavg", 0, 0.8, setting=settings[1]), raw=raw))[
        "table"
    ]
    # FedSage, Appendix D.3, Table 3.
    theirs = found.set_index(["dataset", "batch_size"])["paper_fedsage_mean"]
    assert (theirs["pubmed", 1], theirs["pubmed", 16], theirs.isna().sum()) == (0.8682, 0.8733, 2)
    shared = [
        finished(name, 0, 0.8, clients=3)
        for name in ("fedavg", "fedsage_plus_shared", "fedsage_plus")
    ]
    # Appendix D.2, Table 2.
    found = sweep.tables(study(*shared))["table"].set_index("method")["paper_fedsage_mean"]
    assert found.to_dict() == {
        "fedavg": 0.8656,
        "fedsage_plus_shared": 0.8619,
        "fedsage_plus": 0.8686,
    }
    other = sweep.tables(study(*(finished(f"feddep,depth={depth}", 0, 0.8) for depth in (1, 3))))[
        "table"
    ]
    assert not [column for column in other if column.startswith("paper_")]


PLACES = [("cora", 5), ("cora", 10), ("citeseer", None)]
# Validation accuracy at each place: CiteSeer is easy. The means over interpretations are 0.50,
# 0.60, 0.90.
SCORES = {
    "feddep": (0.49, 0.58, 0.90),
    "feddep,depth=1": (0.52, 0.61, 0.91),
    "feddep,prototypes=3": (0.48, 0.60, 0.88),
    "feddep,prototypes=3,depth=1": (0.51, 0.61, 0.91),
}


def interpretations(
    best: float = 0.5, scores: dict[str, tuple[float, ...]] = SCORES, **options: Any
) -> Study:
    runs = [
        finished(name, 0, best * score, dataset=dataset, clients=clients, validation=score)
        for name, of in scores.items()
        for (dataset, clients), score in zip(PLACES, of, strict=False)
    ]
    return study(*runs, **options)


@pytest.mark.parametrize("best", [0.5, -0.7])
def test_a_grid_ranks_by_validation_alone(best: float) -> None:
    tables = grid.tables(interpretations(best))
    table, effects = tables["table"], tables["main_effects"]
    # Differences from the cells' means: (-1, -2, 0), (2, 1, 1), (-2, 0, -2), (1, 1, 1) hundredths.
    assert table["method"].tolist() == [
        "feddep,depth=1",
        "feddep,prototypes=3,depth=1",
        "feddep",
        "feddep,prototypes=3",
    ]
    assert table["difference"].tolist() == pytest.approx([0.04 / 3, 0.01, -0.01, -0.04 / 3])
    assert table["se"].tolist() == pytest.approx([0.01 / 3, 0.0, 0.01 / math.sqrt(3), 0.02 / 3])
    assert table["rank"].tolist() == [1, 2, 3, 4]
    assert table.iloc[0][["cora_m5", "cora_m10", "citeseer_centralised"]].tolist() == pytest.approx(
        [0.52, 0.61, 0.91]
    )
    assert effects[["option", "value", "interpretations", "cells"]].values.tolist() == [
        *(
            ["depth", 1, 2, 3],
            ["depth", 2, 2, 3],
            ["prototypes", "null", 2, 3],
            ["prototypes", 3, 2, 3],
        )
    ]
    # Depth 1 in each cell: (2 + 1) / 2, (1 + 1) / 2, (1 + 1) / 2 hundredths; C = null: 1/2, -1/2,
    # 1/2.
    assert effects["difference"].tolist() == pytest.approx(
        [0.07 / 6, -0.07 / 6, 0.01 / 6, -0.01 / 6]
    )
    assert effects["se"].tolist() == pytest.approx([0.01 / 6, 0.01 / 6, 0.01 / 3, 0.01 / 3])


def test_only_cells_that_all_interpretations_have_count() -> None:
    table = grid.tables(
        interpretations(scores={"feddep": (0.5, 0.5, 0.99), "feddep,depth=1": (0.6, 0.7)})
    )["table"]
    assert table["method"].tolist() == ["feddep,depth=1", "feddep"]
    assert table["cells"].tolist() == [2, 2]
    assert table["difference"].tolist() == pytest.approx([0.075, -0.075])
    with pytest.raises(DataError):
        grid.tables(study(finished("feddep", 0, 0.5), finished("feddep,depth=1", 1, 0.5)))
    with pytest.raises(DataError):  # no run has measured it
        grid.tables(interpretations(score="global_validation"))


def test_paired_places_and_pooled_cells() -> None:
    """Three cells, whose mean differences are 1, 2 and 3 hundredths."""
    runs = []
    for k, (dataset, m) in enumerate([("cora", 5), ("cora", 10), ("citeseer", 5)]):
        for seed, noise in enumerate((-0.01, 0.0, 0.01)):
            runs.append(finished("fedavg", seed, 0.5, dataset=dataset, clients=m))
            runs.append(
                finished("feddep", seed, 0.51 + 0.01 * k + noise, dataset=dataset, clients=m)
            )
    table = paired.tables(study(*runs))["table"]
    assert list(table.columns) == paired.COLUMNS
    assert table[["method", "reference", "cells"]].values.tolist() == [
        ["feddep", "fedavg", n] for n in (1, 1, 1, 3)
    ]
    assert table["mean_difference"].tolist() == pytest.approx([0.01, 0.02, 0.03, 0.02])
    half = T_95_TWO_DEGREES * 0.01 / math.sqrt(3)
    p = [two_sided_p(k * math.sqrt(3)) for k in (1, 2, 3)]
    # Over all cells the seed is the unit: it has the same noise in each.
    assert table["p"].tolist() == pytest.approx([*p, p[1]])
    assert [table["low"].iloc[-1], table["high"].iloc[-1]] == pytest.approx(
        [0.02 - half, 0.02 + half]
    )
    # Two tests on Cora, one on CiteSeer, one over all cells.
    assert table["p_holm"].tolist() == pytest.approx([p[0], 2 * p[1], p[2], p[1]])
    assert table["seeds"].tolist() == [3, 3, 3, 3]
    assert table["verdict"].tolist() == ["undecided", "undecided", "better", "undecided"]


def test_cells_are_pooled_over_the_seeds_that_all_have() -> None:
    runs = []
    for dataset, gains in (("cora", (0.01, 0.02, 0.03, 0.5)), ("citeseer", (0.03, 0.05, 0.04))):
        for seed, gain in enumerate(gains):
            runs.append(finished("fedavg", seed, 0.5, dataset=dataset))
            runs.append(finished("feddep", seed, 0.5 + gain, dataset=dataset))
    pooled = paired.tables(study(*runs))["table"].iloc[-1]
    assert (pooled["cells"], pooled["seeds"]) == (2, 3)
    expected = stats.ttest_1samp([0.02, 0.035, 0.035], 0).confidence_interval()
    assert [pooled["mean_difference"], pooled["low"], pooled["high"]] == pytest.approx(
        [0.03, *expected]
    )


@pytest.mark.parametrize("alike", [True, False])
def test_paired_cells_are_pooled_over_settings_unless_a_place_has_several(alike: bool) -> None:
    runs, other = [], "citeseer" if alike else "cora"
    for setting, dataset, m, gain in (
        ("feddep", "cora", 5, 0.01),
        ("vesper", other, 5, 0.03),
        ("vesper", "citeseer", 10, 0.05),
    ):
        for seed in range(3):
            runs.append(finished("fedavg", seed, 0.5, dataset=dataset, clients=m, setting=setting))
            runs.append(
                finished("feddep", seed, 0.5 + gain, dataset=dataset, clients=m, setting=setting)
            )
    table = paired.tables(study(*runs))["table"]
    pooled = table[table["dataset"].isna()]
    assert pooled["setting"].fillna("").tolist() == ([""] if alike else ["vesper"])
    assert pooled["mean_difference"].tolist() == pytest.approx([0.03 if alike else 0.04])


def test_a_setting_has_gains_on_each_graph_and_over_all() -> None:
    gains = {
        "feddep": {
            "cora": (0.10, 0.11, 0.12),
            "citeseer": (-0.20, -0.21, -0.22),
            "pubmed": (0.20, 0.21, 0.22),
        },
        "feddep,rounds=8": {
            "cora": (0.0, 0.0001, -0.0001),
            "citeseer": (0.3, 0.31, 0.32),
            "pubmed": (0.2, 0.21, 0.22),
        },
    }
    runs = [
        finished(method, seed, 0.5 + gain * (method == "feddep"), dataset=dataset, setting=setting)
        for setting, graphs in gains.items()
        for dataset, of in graphs.items()
        for method in ("fedavg", "feddep")
        for seed, gain in enumerate(of)
    ]
    raw = {**RAW, "datasets": {**RAW["datasets"], "pubmed": {}}}
    options = {"reference": "fedavg", "axes": ["rounds"]}
    found = settings.tables(study(*runs, raw=raw, options=options))
    usual, longer = (row(found["over_graphs"], setting=of) for of in ("usual", "rounds=8"))
    assert [usual[of] for of in settings.VERDICTS] == [2, 0, 1]
    assert [longer[of] for of in settings.VERDICTS] == [2, 1, 0]
    assert usual["graphs"] == longer["graphs"] == 3
    assert usual["mean_difference"] == pytest.approx((0.11 - 0.21 + 0.21) / 3)
    low, high = stats.ttest_1samp([0.0, 0.31, 0.21], 0).confidence_interval()
    assert [longer["low"], longer["high"]] == pytest.approx([low, high])


def test_the_baseline_is_what_comes_first_and_something_must_pair() -> None:
    table = paired.tables(
        study(*(finished(name, 0, 0.5) for name in ("feddep,depth=1", "fedavg", "feddep")))
    )["table"]
    assert set(table["reference"]) == {"feddep,depth=1"}
    assert table["method"].tolist() == ["fedavg", "feddep"]
    assert table[["p", "p_holm"]].isna().all(axis=None)
    with pytest.raises(DataError):
        paired.tables(study(finished("fedavg", 0, 0.5), finished("feddep", 1, 0.5)))


R = 10


def ingredients(clients: int = 5, own_rounds: int = R) -> dict[str, list[Finished]]:
    """Three seeds of each; all but Global's accuracies are the same for each seed. Global: 0.89,
    0.90, 0.91.
    """

    def of(
        name: str, accuracy: float, rounds: int, m: int | None = clients, spread: float = 0.0
    ) -> list[Finished]:
        setting = "feddep" if rounds == own_rounds else f"feddep,rounds={rounds}"
        given: dict[str, Any] = {"clients": m, "setting": setting, "rounds": rounds}
        return [finished(name, seed, accuracy + spread * (seed - 1), **given) for seed in range(3)]

    return {
        "global": of("global", 0.90, R, None, 0.01),
        "global_fewer": of("global", 0.87, R // clients, None),
        "oracle": of(headroom.BOUND, 0.86, R),
        "fedavg": of("fedavg", 0.80, R),
        "fedavg_longer": of("fedavg", 0.85, R * clients),
        "feddep": of("feddep", 0.82, R),
    }


def flat(parts: dict[str, list[Finished]]) -> list[Finished]:
    return [run for runs in parts.values() for run in runs]


@pytest.mark.parametrize(
    "own_rounds", [R, R + 1]
)  # without runs of the setting's rounds those of most methods count
def test_every_difference_of_a_headroom(own_rounds: int) -> None:
    (found,) = headroom.tables(study(*flat(ingredients(own_rounds=own_rounds))))["table"].to_dict(
        "records"
    )
    assert (found["setting"], found["dataset"], found["clients"], found["rounds"]) == (
        "feddep",
        "cora",
        5,
        R,
    )
    assert [found[f"{name}_mean"] for name in headroom.INGREDIENTS] == pytest.approx(
        [0.90, 0.87, 0.86, 0.80, 0.85, 0.82]
    )
    assert [found[f"{name}_mean"] for name in headroom.DIFFERENCES] == pytest.approx(
        [0.10, 0.06, 0.04, 0.05, 0.03, 0.02]
    )
    half = T_95_TWO_DEGREES * 0.01 / math.sqrt(3)
    assert [found["gap_low"], found["gap_high"], found["gap_seeds"]] == pytest.approx(
        [0.10 - half, 0.10 + half, 3]
    )
    assert math.isnan(found["neighbours_low"])  # all its differences are equal


@pytest.mark.parametrize("missing", headroom.INGREDIENTS)
def test_what_a_headroom_lacks_leaves_its_columns_empty(missing: str) -> None:
    parts = ingredients()
    del parts[missing]
    (found,) = headroom.tables(study(*flat(parts)))["table"].to_dict("records")
    assert {name for name in headroom.INGREDIENTS if math.isnan(found[f"{name}_mean"])} == {missing}
    for name, (more, less, _) in headroom.DIFFERENCES.items():
        assert math.isnan(found[f"{name}_mean"]) == (missing in (more, less))


def test_cells_of_a_headroom_have_ingredients_of_their_own() -> None:
    """With M = 3, R / M is no whole number: 3 rounds are the nearest.  Of several variants of
    FedDEP the first counts.
    """
    three = ingredients(3)
    three["global_fewer"].append(
        finished("global", 0, 0.1, clients=None, setting="feddep,rounds=4", rounds=4)
    )
    del three["global"]  # the same as with five clients
    variant = [finished("feddep,depth=1", seed, 0.1, rounds=R) for seed in range(3)]
    table = headroom.tables(study(*flat(ingredients()), *flat(three), *variant))["table"]
    assert table["clients"].tolist() == [3, 5]
    for name, mean in (("global_fewer", 0.87), ("fedavg_longer", 0.85), ("feddep", 0.82)):
        assert table[f"{name}_mean"].tolist() == pytest.approx([mean, mean])
    with pytest.raises(DataError):
        headroom.tables(study(finished("global", 0, 0.9, clients=None)))


OTHER = "feddep,encoder=gcn"


def seeds(
    method: str,
    best: float,
    *,
    spread: float = 0.0,
    score: float = 0.5,
    local: float = 0.5,
    **where: Any,
) -> list[Finished]:
    """Three seeds, whose accuracies are ``spread`` apart; local ones are 0.1 less than global
    ones.
    """
    values = [best + spread * (seed - 1) for seed in range(3)]
    measured = [
        {"local_before": value - 0.1, "global_validation": score, "validation": local}
        for value in values
    ]
    return [
        finished(method, seed, value, **where, **measured[seed])
        for seed, value in enumerate(values)
    ]


def cell(**where: Any) -> list[Finished]:
    """Headroom 0.06, of which FedDEP wins a half back and FedGCN loses 0.03."""
    runs = [*seeds("fedavg", 0.80, **where), *seeds(recovery.BOUND, 0.86, spread=0.01, **where)]
    return [
        *runs,
        *seeds("feddep", 0.83, spread=0.001, **where),
        *seeds("fedgcn", 0.77, spread=0.001, **where),
    ]


def test_headroom_gain_and_share_of_a_recovery() -> None:
    tables = recovery.tables(study(*cell()))
    half = T_95_TWO_DEGREES * 0.01 / math.sqrt(3)
    for evaluation, less in (("global", 0.0), ("local", 0.1)):
        found = row(tables["cells"], evaluation=evaluation)
        assert [found[f"headroom_{part}"] for part in ("mean", "low", "high")] == pytest.approx(
            [0.06, 0.06 - half, 0.06 + half]
        )
        assert [found["fedavg_mean"], found["oracle_mean"], found["oracle_std"]] == pytest.approx(
            [0.8 - less, 0.86 - less, 0.01]
        )
        feddep = row(tables["table"], evaluation=evaluation, method="feddep")
        assert [feddep["mean"], feddep["gain"], feddep["share"]] == pytest.approx(
            [0.83 - less, 0.03, 0.5]
        )
        # Two equal tests, one an evaluation; FedGCN uses edges across clients.
        assert feddep["p_holm"] == pytest.approx(2 * feddep["p"])
        assert row(tables["table"], evaluation=evaluation, method="fedgcn")[
            "share"
        ] == pytest.approx(-0.5)


def test_the_summary_of_a_recovery_is_over_cells_with_headroom() -> None:
    little = [*seeds("fedavg", 0.80, clients=10), *seeds(recovery.BOUND, 0.819, clients=10)]
    more = [*seeds("fedavg", 0.80, clients=3), *seeds(recovery.BOUND, 0.90, clients=3)]
    more += seeds("feddep", 0.81, spread=0.001, clients=3)
    tables = recovery.tables(
        study(*cell(), *little, *seeds("feddep", 0.7, spread=0.001, clients=10), *more)
    )
    assert math.isnan(
        row(tables["table"], evaluation="local", method="feddep", clients=10)["share"]
    )
    feddep, fedgcn = (
        row(tables["summary"], evaluation="local", method=name) for name in ("feddep", "fedgcn")
    )
    assert (feddep["cells"], feddep["better"], fedgcn["cells"], fedgcn["better"]) == (
        2,
        2,
        1,
        0,
    )
    assert [feddep[f"{which}_share"] for which in ("mean", "least", "largest")] == pytest.approx(
        [0.3, 0.1, 0.5]
    )
    assert [feddep["largest_loss"], fedgcn["largest_loss"]] == pytest.approx([-0.1, -0.03])


def test_validation_nodes_choose_the_setting_of_each_evaluation() -> None:
    runs = [*seeds("fedavg", 0.80, score=0.7, local=0.6), *seeds(recovery.BOUND, 0.86)]
    runs += [
        *seeds("fedavg", 0.75, setting=OTHER, score=0.6, local=0.7),
        *seeds("feddep", 0.81, setting=OTHER),
    ]
    tables = recovery.tables(study(*runs))
    found = tables["cells"].set_index("evaluation")
    assert found["fedavg_setting"].to_dict() == {"global": "feddep", "local": OTHER}
    assert found["headroom_mean"].tolist() == pytest.approx([0.06, 0.11])
    # Paired with the other encoder.
    assert row(tables["table"], evaluation="global")["gain"] == pytest.approx(0.01)


SLOW, FAST = "feddep,learning_rate=0.03", "feddep,learning_rate=0.3"
TRIALS = [
    finished("fedavg", 9, 0.9, setting=SLOW, validation=0.6),
    finished("fedavg", 9, 0.1, setting=FAST, validation=0.7),
    finished("feddep,depth=1", 9, 0.9, setting=SLOW, validation=0.8),
    finished("feddep,depth=2", 9, 0.1, setting=SLOW, validation=0.5),
    finished("global", 9, 0.6, setting=FAST, clients=None, validation=0.6),
    finished("global", 9, 0.6, setting=SLOW, clients=None, validation=0.1),
]


def finals(spelled: str = "feddep,depth=1", setting: str = SLOW) -> list[Finished]:
    runs = [finished("global", seed, 0.6, setting=FAST, clients=None) for seed in range(3)]
    for seed, gain in enumerate((0.02, 0.04, 0.03)):
        runs.append(finished("fedavg", seed, 0.5, setting=FAST, best_round=4))
        runs.append(finished(spelled, seed, 0.5 + gain, setting=setting))
    return runs


def tuned_study(*runs: Finished) -> Study:
    return study(*runs, kind="tuned", search_seeds=[9])


def test_tuned_methods_have_what_validation_nodes_choose() -> None:
    tables = tuned.tables(tuned_study(*TRIALS, *finals()))
    fedavg, feddep = (row(tables["choices"], method=name) for name in ("fedavg", "feddep"))
    assert (fedavg["trials"], fedavg["chosen_setting"]) == (2, FAST)
    assert (feddep["chosen_setting"], feddep["chosen_method"]) == (SLOW, "feddep,depth=1")
    assert [feddep["validation"], feddep["median_validation"]] == pytest.approx([0.8, 0.65])
    assert tables["table"]["method"].tolist() == ["global", "fedavg", "feddep"]
    found = row(tables["table"], method="feddep")
    assert [found["seeds"], found["mean"], found["mean_difference"]] == pytest.approx(
        [3, 0.53, 0.03]
    )
    assert row(tables["table"], method="global")["mean_difference"] == pytest.approx(0.1)
    assert tables["table"]["unfinished_runs"].tolist() == [0, 1, 0]
    assert tables["table"]["unfinished"].tolist() == [1, 1, 1]  # the greater of both rows'
    assert tables["table"]["clients"].tolist() == [5, 5, 5]


def test_tuned_methods_have_a_mean_where_all_their_runs_were_measured() -> None:
    worst = [[0.2, 0.7], [0.4, 0.9], [0.3, 0.6]]
    runs = [
        finished("fedavg", seed, 0.5, setting=FAST, accuracies=worst[seed], macro_f1=f1)
        for seed, f1 in enumerate((0.1, 0.3, None))
    ]
    table = tuned.tables(tuned_study(*TRIALS[:2], *runs))["table"]
    assert table["worst_client"].tolist() == pytest.approx([0.3])
    assert table["client_spread"].tolist() == pytest.approx([(0.25 + 0.25 + 0.15) / 3])
    assert table["macro_f1"].isna().all()


@pytest.mark.parametrize(
    "runs",
    [
        TRIALS,
        [*TRIALS[1:], *finals()],  # unequal numbers of trials
        [*TRIALS, *finals("feddep,depth=2")],  # not what was chosen
        [*TRIALS, *finals(setting=FAST)],
        [*TRIALS, *finals(), finished("fedgcn", 0, 0.5)],  # no trial
    ],
)
def test_tuned_runs_are_of_what_was_chosen(runs: list[Finished]) -> None:
    with pytest.raises(DataError):
        tuned.tables(tuned_study(*runs))


FEW: dict[str, Any] = {"datasets": {"cora": {}}, "clients": [5]}
BLOCKS: dict[str, list[dict[str, Any]]] = {
    "sweep": [
        {**FEW, "settings": {"feddep": {"fanout": [1, 5]}}, "methods": {"global": {}, "fedavg": {}}}
    ],
    "curves": [FEW],
    "conventions": [
        {
            **FEW,
            "datasets": {"cora": {"features": ["raw", "row"]}},
            "methods": {"fedavg": {}, "local": {}},
        }
    ],
    "grid": [{**FEW, "methods": {"feddep": {"prototypes": [3, 5]}}}],
    "paired": [{**FEW, "methods": {"fedavg": {}, "global": {}}}],
    "privacy": [
        {
            **FEW,
            "settings": {"feddep": {"fanout": [1, 5]}},
            "methods": {"fedavg": {}, "feddep_wo_nfdp": {}},
        }
    ],
    "recovery": [{**FEW, "methods": {"fedavg": {}, recovery.BOUND: {}, "feddep": {}}}],
    "headroom": [FEW, {**FEW, "settings": {"feddep": {"rounds": 20}}, "methods": {"fedavg": {}}}],
    "tradeoff": [
        {
            **FEW,
            "methods": {
                "vertical_mlp": {},
                "gap": {"epsilon": [4.0, 8.0], "delta": 1e-6, "accountant": "no_amplification"},
            },
        }
    ],
    "tuned": [{**FEW, "methods": {"fedavg": {}, "feddep": {}}}],
    "pooled": [],
    "searched": [],
    "reproduction": [{**FEW, "methods": {"fedavg": {}, "global": {}}}],
    "settings": [
        {
            **FEW,
            "settings": {"feddep": {"rounds": [4, 8]}},
            "methods": {"fedavg": {}, "fedprox": {}},
        }
    ],
}


FURTHER_TABLES = {
    "curves": ["rounds"],
    "grid": ["main_effects"],
    "recovery": ["cells", "summary"],
    "tuned": ["choices"],
    "pooled": ["families", "with_flawed"],
    "settings": ["over_graphs"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", studies.available())
def test_every_kind_makes_its_files_the_same_twice(kind: str, tmp_path: Path) -> None:
    tuned: dict[str, Any] = {"kind": "tuned", "runs": BLOCKS["tuned"], "search_seeds": [0]}
    searched = {"setting": "feddep", "datasets": ["cora"], "methods": ["fedavg", "fedprox"]}
    searched |= {"clients": 5, "trials": 5, "seeds": [0, 1]}
    options = {
        "tuned": tuned,
        "pooled": {"studies": ["other"]},
        "searched": {"search": searched, "search_seeds": [2, 3]},
        "settings": {"options": {"reference": "fedavg", "axes": ["rounds"]}},
    }.get(kind, {})
    one = {"name": "one", "kind": kind, "title": "One", "runs": BLOCKS[kind], **options}
    raw = {**RAW, "studies": [one, {**tuned, "name": "other"}]}
    judged = {
        "validation_after": 0.5,
        "local_after": 0.6,
        "best_round": [1, 2],
        "client_accuracies": "[[0.4, 0.5], [0.6, 0.9]]",
    }
    measured = {
        "local_before": 0.5,
        "global_validation": 0.5,
        **(judged if kind == "conventions" else {}),
    }
    config = publish(tmp_path, raw, **measured)
    contents = []
    for folder in ("once", "again"):
        output.write(tmp_path / folder, studies.contents(config, "one"))
        contents.append({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()})
    assert contents[0] == contents[1]
    tables = [f"{name}.csv" for name in ("table", *FURTHER_TABLES.get(kind, ()))]
    assert set(contents[0]) == {*tables, "page.md", "figure.svg"}
    assert all(len(pd.read_csv(tmp_path / "once" / name)) > 0 for name in tables)
    page = contents[0]["page.md"].decode()
    assert page.startswith("# One\n")
    assert page.count("\n|") > 2  # a table
    assert not any(f" {word} " in page for word in ("nan", "None", "NA", "<NA>"))
    # Axes clip what is drawn inside them, and not ticks and titles.
    assert contents[0]["figure.svg"].count(b"clip-path=") > 0


def test_curves_have_a_row_a_round(tmp_path: Path) -> None:
    raw = {**RAW, "studies": [{"name": "one", "kind": "curves", "runs": [FEW]}]}
    found = studies.contents(publish(tmp_path, raw, seconds=3.0), "one")
    assert found["table.csv"]["total_seconds"].tolist() == [3.0] * 3
    assert len(found["rounds.csv"]) == 3 * 4


def test_pooled_runs_are_the_final_ones_of_the_studies() -> None:
    runs = []
    for k, dataset in enumerate(("cora", "citeseer", "pubmed")):
        for seed in (0, 1, 2, 9):
            gain = 0.5 if seed == 9 else 0.01 * (k + 1)
            runs.append(finished("fedavg", seed, 0.4, dataset=dataset))
            runs.append(finished("fedper", seed, 0.4 + gain, dataset=dataset, best_round=4 - k % 2))
    raw = {**RAW, "datasets": {"cora": {}, "citeseer": {}, "pubmed": {}}}
    block = {"datasets": raw["datasets"], "clients": [5], "seeds": [0, 1, 2, 9]}
    block["methods"] = {"fedavg": {}, "fedper": {}}
    config = validate(
        {
            **raw,
            "studies": [
                {"name": "made_up", "kind": "pooled", "studies": ["other"]},
                {"name": "other", "kind": "tuned", "search_seeds": [9], "runs": [block]},
            ],
        }
    )
    made = assemble(config, "made_up", [run(config) for run, _ in runs], table(runs))
    found = pooled.tables(made)
    # On Cora and PubMed FedPer is unfinished.
    sound, every = (found[name].iloc[0] for name in ("table", "with_flawed"))
    assert (sound["graphs"], every["graphs"]) == (1, 3)
    assert [sound["mean_difference"], every["mean_difference"]] == pytest.approx([0.02, 0.02])
    assert math.isnan(sound["low"])
    expected = stats.ttest_1samp([0.01, 0.02, 0.03], 0).confidence_interval()
    assert [every["low"], every["high"]] == pytest.approx([*expected])


def test_a_family_of_graphs_has_the_mean_over_methods_on_each_graph() -> None:
    gains = [
        ("cora", "fedper", 0.02, 0.0),
        ("cora", "fedprox", 0.04, 0.0),
        ("cora", "local", 0.9, 0.0),
        ("cora", "fedgcn", 0.9, 0.0),
        ("pubmed,features=raw", "fedper", 0.01, 0.0),
        ("pubmed,features=raw", "fedprox", 0.9, 0.6),
        ("citeseer", "fedprox", 0.02, 0.0),
        ("msacademic", "fedper", 0.5, 0.0),
        ("amazon_photo", "fedper", 0.5, 1.0),
    ]
    columns = ["dataset", "method", "mean_difference", "unfinished"]
    differences = pd.DataFrame(gains, columns=columns).assign(stalled=0.0)
    found = pooled.families(differences, {"accuracy": 0.01, "strict": 0.005})
    assert found[["family", "graphs"]].values.tolist() == [["citation", 3], ["co-author", 1]]
    assert found["mean_difference"].tolist() == pytest.approx([0.02, 0.5])
    interval = stats.ttest_1samp([0.03, 0.01, 0.02], 0).confidence_interval()
    assert found.loc[0, ["low", "high"]].tolist() == pytest.approx([*interval])
    assert found["verdicts"].tolist() == ["2 undecided", "1 undecided"]


def test_a_study_has_the_runs_of_the_studies_that_it_names() -> None:
    blocks = [{**FEW, "methods": {name: {}}} for name in ("fedavg", "fedper", "fedprox")]
    one, two, three = (
        {"name": name, "kind": "sweep", "runs": [block]}
        for name, block in zip(("one", "two", "three"), blocks, strict=True)
    )
    config = validate({**RAW, "studies": [{**three, "studies": ["one", "two", "one"]}, one, two]})
    runs = [plan.study_runs(config, name) for name in ("one", "two", "three")]
    assert [run.method.name for run in runs[2]] == ["fedavg"] * 3 + ["fedper"] * 3 + ["fedprox"] * 3
    assert runs[2][:6] == runs[0] + runs[1]
    with pytest.raises(ConfigError, match=r"studies\.three\.studies .*two"):
        validate({**RAW, "studies": [{**three, "studies": ["twoo"]}, one, two]})


@pytest.mark.parametrize(("kind", "nearest"), [("swep", "sweep"), ("pared", "paired")])
def test_a_kind_that_nothing_makes_is_refused(kind: str, nearest: str) -> None:
    config = validate({**RAW, "studies": [{**RAW["studies"][0], "kind": kind}]})
    with pytest.raises(ConfigError, match=rf"made_up\.kind .*{nearest}$"):
        studies.check_kinds(config)
    studies.check_kinds(validate(RAW))


def test_a_comparison_in_pairs_of_one_method_is_refused() -> None:
    def checked(*methods: str) -> None:
        runs = [{"methods": {name: {} for name in methods}}]
        study = {"name": "one", "kind": "paired", "runs": runs}
        studies.check_kinds(validate({**RAW, "studies": [study]}))

    checked("fedavg", "feddep")
    with pytest.raises(ConfigError, match=r"one .* fedavg"):
        checked("fedavg")
