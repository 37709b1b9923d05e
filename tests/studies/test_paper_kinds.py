"""Kinds of study that one paper needs, and the numbers that papers print."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fabricated import RAW, Finished, finished, publish, row, study, two_sided_p
from feddep.config import variants
from feddep.config.loading import validate
from feddep.experiment import plan
from feddep.privacy.accountant import one_sampling
from feddep.reporting import load, published
from feddep.reporting.frames import records
from feddep.utils.errors import ConfigError, DataError
from studies.feddep.kinds import reproduction
from studies.field.kinds import conventions, settings
from studies.privacy.kinds import privacy
from studies.vesper.kinds import tradeoff


def test_the_published_pairs_are_those_of_figure_5() -> None:
    runs = [
        finished(name, seed, 0.8, clients=m)
        for m, sigma in ((3, 4.2), (5, 2.1), (10, 0.4), (20, 1.0))
        for name in ("feddep", f"feddep_wo_nfdp,sigma={sigma}")
        for seed in range(2)
    ]
    table = privacy.tables(study(*runs))["table"]
    assert table["seeds"].tolist() == [2] * 8
    for clients, degree, epsilon, sigma in (
        (3, 15, 0.4, 4.2),
        (5, 10, 0.6, 2.1),
        (10, 3, 1.4, 0.4),
    ):
        here = table[table["clients"] == clients]
        assert here["epsilon"].round(1).tolist() == [epsilon] * 2
        assert here["delta"].tolist() == pytest.approx([one_sampling(degree, 5).delta] * 2)
        assert here[["degree_D", "paper_sigma", "samplings"]].drop_duplicates().values.tolist() == [
            [degree, sigma, 8]
        ]
        assert here["noise_sigma"].dropna().tolist() == [sigma]
    assert table.loc[table["clients"] == 3, "exact_delta"].tolist() == pytest.approx([1 / 3] * 2)
    # Two hops in each of four rounds.
    assert table.loc[table["clients"] == 3, "exact_log10_rest"].tolist() == pytest.approx(
        [8 * math.log10(2 / 3)] * 2
    )
    assert table.loc[table["clients"] == 20, "epsilon"].isna().all()
    with pytest.raises(DataError):
        privacy.tables(
            study(finished("global", 0, 0.9, clients=None), finished("fedavg", 0, 0.8, clients=20))
        )


def vertical(method: str, best: float, seed: int = 0, **more: Any) -> Finished:
    """A run on the whole graph; noise is by an account that is quick to compute."""
    method += ",accountant=no_amplification,delta=1e-09" if "epsilon" in method else ""
    return finished(method, seed, best, clients=None, **more)


def test_a_tradeoff_is_over_the_budget() -> None:
    """GAP is better on test nodes, VESPER on validation nodes."""
    runs = []
    for seed in range(2):
        at: dict[str, Any] = {"seed": seed}
        runs += [vertical("vesper_gcn,min_degree=5,epsilon=4.0", 0.73, validation=0.80, **at)]
        runs += [
            vertical("gap,epsilon=16.0", 0.79, validation=0.6, **at),
            vertical("gap,epsilon=4.0", 0.74, validation=0.7, **at),
        ]
        runs += [
            vertical("vertical_gin", 0.9, **at),
            vertical("vertical_mlp", 0.70 + 0.05 * seed, **at),
        ]
    table = tradeoff.tables(study(*runs))["table"]
    assert [name.partition(",")[0] for name in table["method"]] == [
        "vertical_mlp",
        "vertical_gin",
        "gap",
        "gap",
        "vesper_gcn",
    ]
    assert table["epsilon"].fillna(0).tolist() == [0, 0, 4, 16, 4]
    assert table["mean"].tolist() == pytest.approx([0.725, 0.9, 0.74, 0.79, 0.73])
    # Alone in its column there is nothing to choose; else validation decides.
    assert table["chosen"].tolist() == [False, False, False, False, True]
    # Above 0.725 + 0.035 is GAP at 16 alone, and what has no noise has no mark.
    assert table["above_mlp"].tolist() == [False, False, False, True, False]
    assert table["guarantee"].tolist()[2:] == [math.inf] * 3  # neighbours are sampled
    assert table["theta"].isna().tolist() == [True, True, False, False, False]
    assert table["theta"][2] > table["theta"][3] > 0


def test_the_numbers_of_vesper_stand_beside_ours_of_a_graph_that_stands_in() -> None:
    rows = [
        ("amazon_photo", "vertical_mlp", None, 0.90),
        ("amazon_photo", "gap,degree=5", 4.0, 0.50),
        ("amazon_photo", "gap,degree=9", 4.0, 0.60),
        ("amazon_photo,features=raw", "vesper_gin,degree=50", 32.0, 0.80),
        ("cora", "vesper_gcn", 32.0, 0.70),
    ]
    ours = pd.DataFrame(rows, columns=["dataset", "method", "epsilon", "mean"])
    ours = ours.assign(validation_mean=ours["mean"], std=0.01, seeds=3, unfinished=0.0, stalled=0.0)
    found = tradeoff.beside(ours, {"ogbn_products": "amazon_photo"}).round(4)
    assert len(found) == 87
    columns = ["dataset", "method", "decoder", "epsilon", "published_mean", "mean"]
    assert found[columns].dropna(subset="mean").fillna("").values.tolist() == [
        ["ogbn_products", "vertical_mlp", "", math.inf, 0.6106, 0.90],
        ["ogbn_products", "gap", "", 4.0, 0.5920, 0.60],
        ["ogbn_products", "vesper_gin", "concat", 32.0, 0.7582, 0.80],
    ]
    page = tradeoff._printed_section(found)
    assert page.count("\n| ogbn-products ") == page.count("| Amazon Photo ") == 3
    assert page.index("2,449,029") < page.index("7,650")


def test_a_tradeoff_over_the_noise_scale_and_mistakes() -> None:
    runs = [
        vertical(f"{name},theta={theta},delta=1e-06", 0.8)
        for name in ("gap", "vesper_gin")
        for theta in (0.0, 0.5, 2.0)
    ]
    table = tradeoff.tables(study(*runs, vertical("vertical_gin", 0.9)))["table"]
    assert table["epsilon"].isna().all()
    assert table["theta"].fillna(-1).tolist() == [-1, 0, 0.5, 2, 0, 0.5, 2]
    assert table["chosen"].tolist() == [False, False, True, True, False, False, False]
    for mixed in (
        [vertical("gap,epsilon=4.0", 0.8), vertical("gap,theta=0.5", 0.8)],
        [vertical("global", 0.8)],
    ):
        with pytest.raises(ConfigError):
            tradeoff.tables(study(*mixed))


def test_a_choice_is_told_by_as_few_options_as_tell_it_from_others() -> None:
    """A rate that goes with its optimiser and an option without a second value on the graph are
    left out.
    """
    columns = {"dataset": ["cora"] * 4 + ["pubmed"], "method": ["fedavg"] * 3 + ["local", "fedavg"]}
    columns |= {
        "optimizer": ["adam", "adam", "sgd", "sgd", "adam"],
        "learning_rate": [0.01, 0.01, 0.5, 0.5, 0.01],
    }
    table = pd.DataFrame(
        {
            **columns,
            "weight_decay": [0.1, 0.0, 0.0, 0.0, 0.0],
            "metric": [*["accuracy"] * 4, "roc_auc"],
        }
    )
    told = conventions.choices(table, ["optimizer", "learning_rate", "weight_decay", "metric"])
    decays = [
        "optimizer=adam, weight_decay=0.1",
        "optimizer=adam, weight_decay=0",
        "optimizer=sgd, weight_decay=0",
    ]
    assert told == [*decays, "no choice", "optimizer=adam, weight_decay=0"]
    both = table.assign(
        method=["fedavg", "fedavg", "fedprox", "fedprox", "fedavg"],
        optimizer=["adam", "sgd"] * 2 + ["adam"],
    )
    # Though it has one value on that graph.
    assert conventions.choices(both, ["optimizer"])[-1] == "optimizer=adam"
    alone = table.assign(
        method=["fedavg", "fedavg", "fedprox", "fedprox", "local"],
        optimizer=["adam", "sgd"] * 2 + ["adam"],
    )
    # What several methods have is told of all.
    assert conventions.choices(alone, ["optimizer"])[-1] == "optimizer=adam"


def test_conventions_have_both_evaluations_and_the_spread_of_the_literature(tmp_path: Path) -> None:
    runs = [
        finished(
            "fedavg",
            seed,
            0.5,
            local_before=0.6,
            local_after=0.7 + 0.02 * seed,
            validation_after=0.5,
            best_round=[1, 2],
        )
        for seed in range(2)
    ]
    for _, each in runs:
        each["client_accuracies"] = "[[0.4, 0.5], [0.6, 0.9]]"
    (found,) = conventions.tables(study(*runs))["table"].to_dict("records")
    assert [found[name] for name in ("local_before", "local_after", "global")] == pytest.approx(
        [0.6, 0.71, 0.5]
    )
    assert [found[name] for name in ("unweighted_before", "unweighted_after")] == pytest.approx(
        [0.5, 0.7]
    )
    assert found["std_after"] == pytest.approx(0.02 / 2**0.5)
    literature = conventions._literature().query("dataset == 'cora' and method == 'fedavg'")["mean"]
    assert (found["published_low"], found["published_high"], found["published"]) == (
        literature.min(),
        literature.max(),
        len(literature),
    )


def test_conventions_show_published_numbers_beside_partitions_like_theirs_alone() -> None:
    runs = [
        finished(
            "fedavg",
            0,
            0.5,
            dataset="cora",
            partition=how,
            local_before=0.6,
            local_after=0.7,
            validation_after=0.5,
            best_round=[1, 2],
        )
        for how in ("metis", "overlap")
    ]
    for _, each in runs:
        each["client_accuracies"] = "[[0.4, 0.5], [0.6, 0.9]]"
    table = conventions.tables(study(*runs))["table"].set_index("partition")
    assert table["published"].notna().to_dict() == {"metis": True, "overlap": False}


@pytest.mark.parametrize(
    ("mean", "std", "agrees"),
    [
        (0.85, 0.03, True),
        (0.9, 0.03, True),
        (0.901, 0.03, False),
        (0.749, 0.03, True),
        (0.71, 0.0, False),
        (0.8, math.nan, None),
    ],
)
def test_two_combined_deviations(mean: float, std: float, agrees: bool | None) -> None:
    # Theirs is 0.8 ± 0.04, so that with 0.03 the combined deviation is 0.05.
    found = reproduction.judge(
        pd.DataFrame([{"mean": mean, "std": std, "published_mean": 0.8, "published_std": 0.04}])
    )
    verdict = found["agrees"].iloc[0]
    assert (None if pd.isna(verdict) else bool(verdict)) is agrees


def test_variants_of_published_numbers_are_spelled_as_the_plan_spells_them() -> None:
    sweep = {"datasets": {"cora": {}}, "methods": {"feddep": {"prototypes": [3, 15]}}}
    batches = {
        "settings": {"fedsage": {"batch_size": [16, 64]}},
        "datasets": {"pubmed": {}},
        "methods": {"fedavg": {}},
    }
    config = validate(
        {
            "datasets": {"cora": {}, "pubmed": {}},
            "clients": [5],
            "seeds": [0, 7],
            "settings": {"feddep": {}, "fedsage": {"batch_size": 64}},
            "methods": {"feddep": {"prototypes": 15}, "fedavg": {}},
            "tables": [{"setting": "feddep", "datasets": ["cora"], "methods": ["fedavg"]}],
            "studies": [
                {"name": name, "kind": "sweep", "runs": [block]}
                for name, block in (("c", sweep), ("b", batches))
            ],
        }
    )
    like = {reproduction.run_like(config, line) for line in records(published.read("accuracy"))}
    found = [run for run in plan.all_runs(config) if replace(run, seed=0) in like]
    assert {(str(run.setting), str(run.place), str(run.method)) for run in found} == {
        *(("feddep", "cora", name) for name in ("fedavg", "feddep", "feddep,prototypes=3")),
        *((setting, "pubmed", "fedavg") for setting in ("fedsage", "fedsage,batch_size=16")),
    }
    assert {run.seed for run in found} == {0, 7}


def test_ours_is_of_the_papers_setting(tmp_path: Path) -> None:
    block = {"methods": {"global": {}, "local": {}, "fedavg": {}}}
    raw = {**RAW, "studies": [{"name": "one", "kind": "reproduction", "runs": [block]}]}
    found = reproduction.tables(load.load(publish(tmp_path, raw), "one"))["table"]
    vesper = found[found["paper"] == "vesper"]
    assert len(found) == len(published.read("accuracy")) + 87 == len(vesper) + 287
    assert vesper["agrees"].isna().all()
    gru = row(vesper, dataset="reddit", method="vesper_gcn,decoder=gru,epsilon=8.0")
    assert (gru["published_mean"], gru["published_std"]) == (0.9102, 0.0031)
    known = found[found["seeds"] > 0]
    # The configuration has no setting fedsage; FedAvg stands in two tables of the FedDEP paper.
    assert set(known["paper"]) == {"feddep"}
    assert known["method"].tolist().count("fedavg") == 2 * 4
    line = row(known, method="fedavg", clients=5, dataset="cora", table="table2")
    assert (line["published_mean"], line["published_std"], line["seeds"]) == (0.8555, 0.014, 3)
    assert line["combined_std"] == pytest.approx(math.hypot(line["std"], 0.014))
    assert line["difference"] == pytest.approx(line["mean"] - 0.8555)
    assert found.loc[found["seeds"] == 0, ["mean", "difference", "agrees"]].isna().all(axis=None)


def test_gains_are_by_setting_and_corrected_within_one() -> None:
    axes = {"participation": 0.5, "new_clients": 2}
    owners = {"validation_after": 0.4, "local_after": 0.6, "client_accuracies": "[[0.4, 0.5]]"}
    runs = []
    for changes in ({}, *({axis: value} for axis, value in axes.items())):
        setting = variants.format_name("vesper,evaluation=owners", changes)
        for seed in range(3):
            for method, gain in (("fedavg", 0), ("fedprox", 0.01), ("ditto", 0.05)):
                before = 0.5 + gain + (0.001 * seed if gain else 0)
                more = {"best_round": [1, 2], "local_before": before, **owners}
                runs.append(finished(method, seed, 0.4, setting=setting, **more))
    options = {"reference": "fedavg", "axes": list(axes)}
    table = settings.tables(study(*runs, options=options))["table"]
    found = table.query("method == 'ditto'").set_index("setting")
    after = dict.fromkeys(["new_clients=2, after"], 0.0)
    gains = dict.fromkeys(["usual", "participation=0.5", "new_clients=2, before"], 0.051) | after
    assert found["mean_difference"].to_dict() == pytest.approx(gains)
    t = 0.051 / (0.001 / 3**0.5)
    assert found["p_holm"]["usual"] == pytest.approx(2 * two_sided_p(t))
