"""The plan of a search: what it is asked for, and which runs follow from which results."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from feddep.config.loading import Config, validate
from feddep.experiment import plan, runs, stages, training_stages
from feddep.experiment.plan import Run
from feddep.experiment.provenance import environment
from feddep.training.summary import DIVERGED
from feddep.utils.errors import ConfigError, DivergenceError
from feddep.utils.files import read_arrays
from workspace import CONFIG, STEPS

SEARCH = {
    "setting": "quick",
    "datasets": ["mini"],
    "methods": ["fedprox", "fedper"],
    "clients": 2,
    "trials": 6,
    "seeds": [0, 1],
}
PROVENANCE = {
    **environment("cpu", 1),
    "data_fingerprint": "f" * 64,
    "seconds": 1.0,
    "seconds_before": {},
}


def config_in(folder: Path, study: dict[str, Any] | None = None, **changes: Any) -> Config:
    search = {"search": {**SEARCH, **changes}, "search_seeds": [7, 8, 9]}
    found = {"name": "found", "kind": "searched", **search, **(study or {})}
    places = {"output": str(folder), "records": {"directory": str(folder / "runs")}}
    settings = {"quick": {"rounds": 2, "hidden_channels": 16}}
    mini = CONFIG["datasets"]["mini"]["synthetic"]
    graphs = {
        name: {"synthetic": {**mini, "seed": seed}}
        for seed, name in enumerate(("mini", "more", "most"))
    }
    changed = {"settings": settings, "datasets": {**graphs, "webkb": {}}, "studies": [found]}
    return validate({**CONFIG, **places, **changed})


def train(
    config: Config,
    planned: Sequence[Run],
    validation: Callable[[Run], float],
    after: Callable[[Run], float] | None = None,
    best_round: int = 1,
) -> None:
    """Pretend to, for 20 rounds; a validation that is not a number is a divergence."""
    for run in planned:
        share = validation(run)
        measured = {"validation": {"best": share, "last": share}, "stalled": share < 0.3}
        measured |= {"best_round": best_round, "curve": {"round": list(range(20))}}
        if after is not None:
            measured["validation_after"] = {"best": after(run), "last": after(run)}
            measured["best_round"] = [best_round, best_round]
            measured["clients"] = [{"accuracy": {"best": [share, after(run)]}}]
        result = {**DIVERGED, **({} if math.isnan(share) else measured)}
        runs.write_cached(run, result, PROVENANCE, runs.cached(config, run.key))


def of(method: str, planned: Sequence[Run]) -> list[Run]:
    return [run for run in planned if run.method.name == method]


def spelled(run: Run) -> tuple[str, str]:
    return run.setting.label, run.method.label


def test_trials_are_ordinary_runs_on_one_seed(tmp_path: Path):
    config = config_in(tmp_path)
    (trials,) = plan.stages(config, "found")
    # The reference has four more, which another seed draws.
    for method, number in (("fedprox", 10), ("fedper", 6)):
        assert len({run.key for run in of(method, trials)}) == number
    first, second = of("fedprox", trials)[:2]
    assert (first.method.label, second.method.label) == ("fedprox", "fedprox,mu=0.0")
    for run in trials:
        assert (
            run.key == plan.one_run(config, run.method.label, 2, 7, setting=run.setting.label).key
        )
    assert plan.study_runs(config, "found") == trials
    assert set(trials) < set(plan.all_runs(config))


def test_each_stage_follows_from_the_one_before(tmp_path: Path):
    config = config_in(tmp_path)
    (trials,) = plan.stages(config, "found")
    place = {
        run.key: number
        for of_cell in (of("fedprox", trials), of("fedper", trials))
        for number, run in enumerate(of_cell)
    }
    again = of("fedprox", trials)[6:]
    first = [math.nan, 0.5, 0.2, 0.8, 0.7, 0.5, 0.1, 0.1, 0.1, 0.1]
    train(config, trials[:-1], lambda run: first[place[run.key]])
    assert len(plan.stages(config, "found")) == 1
    train(config, trials[-1:], lambda run: first[place[run.key]])

    known, finalists = plan.stages(config, "found")
    assert known == trials
    best = [trials[number] for number in (1, 3, 4, 5)]
    wanted = [(*spelled(run), seed) for run in best for seed in (8, 9)]
    wanted += [(*spelled(run), seed) for run in again[:3] for seed in (8, 9)]
    assert [(*spelled(run), run.seed) for run in of("fedprox", finalists)] == wanted
    assert len(of("fedper", finalists)) == 8
    assert all(run.trial for run in finalists)

    # The best on the first seed is behind on the others: means 0.6, 0.5, 0.6 and 0.3.
    later = {spelled(run): share for run, share in zip(best, [0.65, 0.35, 0.55, 0.2], strict=True)}
    later[spelled(again[1])] = 0.95
    train(config, finalists, lambda run: later.get(spelled(run), 0.1))
    *_, final = plan.stages(config, "found")
    assert [(*spelled(run), run.seed) for run in of("fedprox", final)] == [
        (*spelled(run), seed) for run in (best[0], again[1]) for seed in (0, 1)
    ]
    assert len(of("fedper", final)) == 2
    compared = plan.final_runs(config, "found")
    assert compared == {plan.HERE: [*final[:2], *of("fedper", final)], plan.AGAIN: final[-2:]}
    assert not any(run.trial for run in final)
    assert plan.study_runs(config, "found") == [*trials, *finalists, *final]

    table = plan.choices(config, "found").set_index(["method", "configuration"])
    assert table.loc[("fedprox", plan.AGAIN), "validation"] == pytest.approx(2 / 3)
    assert table.loc[("fedprox", plan.AGAIN), "chosen_setting"] == again[1].setting.label
    row = table.loc["fedprox", plan.HERE]
    assert row[["dataset", "trials", "stalled", "diverged", "ties"]].to_list() == [
        "mini",
        6,
        2,
        1,
        1,
    ]
    assert (row["chosen_setting"], row["chosen_method"]) == spelled(best[0])
    assert (row["runner_up_setting"], row["runner_up_method"]) == spelled(best[2])
    assert row["validation"] == pytest.approx(0.6)
    assert row["median_validation"] == pytest.approx(0.5)
    assert row["lead"] == pytest.approx(0)
    # What makes it FedAvg is below the range; one local epoch and 16 channels are the least.
    assert row["edge"] == "local_epochs hidden_channels mu"


@pytest.mark.parametrize(
    ("after", "best"),
    [
        ([0.4, 0.42, 0.44, 0.46, 0.48, 0.6], [0, 1, 2, 5]),  # of five before is better, 0.5
        ([0.5, 0.52, 0.54, 0.56, 0.58, 0.6], [2, 3, 4, 5]),
    ],
)
def test_the_better_of_owners_models_counts(after: list[float], best: list[int], tmp_path: Path):
    config = config_in(tmp_path, methods=["fedper"])
    (trials,) = plan.stages(config, "found")
    place = {run.key: number for number, run in enumerate(trials)}
    train(config, trials, lambda run: 0.5, lambda run: after[place[run.key] % 6])
    _, finalists = plan.stages(config, "found")
    assert [spelled(run) for run in finalists[:8:2]] == [spelled(trials[k]) for k in best]


def test_out_of_the_box_is_what_is_best_on_the_other_graphs(tmp_path: Path):
    """A trial that diverges on one of them is not chosen; any other graph has the usual setting."""
    names = ["mini", "more", "most"]
    setting = {"default": "quick", "mini": "quick,rounds=3"}
    config = config_in(tmp_path, datasets=names, methods=["fedper"], trials=4, setting=setting)
    (trials,) = plan.stages(config, "found")
    cells = {name: [run for run in trials if run.dataset.name == name][:4] for name in names}
    shares = {
        "mini": [0.1, 0.2, 0.3, math.nan],
        "more": [0.3, 0.5, 0.4, 0.9],
        "most": [0.5, 0.3, 0.2, 0.9],
    }
    given = {run.key: shares[name][k] for name in names for k, run in enumerate(cells[name])}
    train(config, trials, lambda run: given.get(run.key, 0.0))
    train(config, plan.stages(config, "found")[-1], lambda run: 0.1)
    found = plan.choices(config, "found").query("configuration == @plan.ELSEWHERE")
    expected = {"mini": (3, 0.9), "more": (0, 0.3), "most": (1, 0.35), "": (1, 1 / 3)}
    for row in found.to_dict("records"):
        place, validation = expected.pop(row["dataset"])
        run = cells.get(row["dataset"], cells["more"])[place]
        assert (row["chosen_setting"], row["chosen_method"]) == spelled(run)
        assert row["validation"] == pytest.approx(validation)
    assert not expected
    final = plan.final_runs(config, "found")[plan.ELSEWHERE]
    assert [run.dataset.name for run in final] == ["mini", "mini", "more", "more", "most", "most"]
    assert all(run.trial and run.seed in (0, 1) for run in final)


@pytest.mark.parametrize(
    ("setting", "best_round", "rounds"),
    [("quick", 19, 2), ("quick", 20, 6), ("quick,rounds=120", 20, plan.MOST_ROUNDS)],
)
def test_what_is_unfinished_has_more_rounds(
    setting: str, best_round: int, rounds: int, tmp_path: Path
):
    """Whichever method it is, and however it was chosen."""
    config = config_in(tmp_path, datasets=["mini", "more"], setting=setting)
    for _ in range(2):
        train(config, plan.stages(config, "found")[-1], lambda run: 0.5, best_round=best_round)
    final = plan.stages(config, "found")[-1]
    assert {run.setting.options["rounds"] for run in final} == {rounds}
    assert plan.final_runs(config, "found").keys() == {*plan.CONFIGURATIONS}


@pytest.mark.parametrize("method", ["fedavg", "feddep"])
def test_a_trial_may_diverge_and_no_other_run(method: str, tmp_path: Path):
    """In its training or in a step."""
    config = config_in(tmp_path)
    setting = "quick,optimizer=sgd,learning_rate=1000.0,weight_decay=1000000.0,batch_size=2"
    run = plan.one_run(config, method, 2, setting=setting)
    files = {name: tmp_path / name for name in ("graph", "split", "partition", *STEPS)}
    stages.prepare(config, "mini", None, files["graph"], tmp_path / "graph.json")
    stages.split(run, files["graph"], files["split"])
    stages.partition(run, files["graph"], files["partition"], tmp_path / "partition.json")
    written = runs.cached(config, run.key), tmp_path / "model"
    with pytest.raises(DivergenceError):
        training_stages.batch(config, [(run, files, *written)])
    assert not any(file.exists() for file in written)
    training_stages.batch(config, [(dataclasses.replace(run, trial=True), files, *written)])
    assert read_arrays(written[1], run.key) == {}
    runs.publish(config, [run])
    (row,) = runs.load(config, [run]).to_dict("records")
    assert row["stalled"]
    assert math.isnan(row["validation"])
    assert len(runs.load_curves(config, [run])) == row["rounds"] == 1


def test_seeds_are_those_of_the_configuration_where_none_are_given(tmp_path: Path):
    config = config_in(tmp_path, {"search_seeds": None}, seeds=None, methods=["fedper"])
    for seeds in ([20], [21, 22], CONFIG["seeds"]):
        found = plan.stages(config, "found")[-1]
        assert list(dict.fromkeys(run.seed for run in found)) == seeds
        train(config, found, lambda run: 0.5)


def test_a_setting_may_be_spelled(tmp_path: Path):
    config = config_in(tmp_path, setting="quick,rounds=3,local_epochs=2")
    (trials,) = plan.stages(config, "found")
    assert {run.setting.options["rounds"] for run in trials} == {3}
    assert trials[0].setting.label == "quick,rounds=3,local_epochs=2"
    assert len({run.setting.options["local_epochs"] for run in trials}) > 1


def test_clients_that_are_graphs_of_their_own(tmp_path: Path):
    """A dataset has a setting of its own, and so many clients, between which is no edge."""
    names = {"mini": (2, 2, {"fedavg", "fedavg_oracle"}), "webkb": (3, 5, {"fedavg"})}
    setting = {"default": "quick", "webkb": "quick,rounds=5"}
    methods = ["fedavg", "fedavg_oracle"]
    config = config_in(tmp_path, datasets=[*names], methods=methods, setting=setting)
    (trials,) = plan.stages(config, "found")
    for name, (clients, rounds, expected) in names.items():
        here = [run for run in trials if run.dataset.name == name]
        assert {run.clients for run in here} == {clients}
        assert {run.setting.options["rounds"] for run in here} == {rounds}
        assert {run.method.name for run in here} == expected


@pytest.mark.parametrize(
    ("study", "changes", "words"),
    [
        ({}, {"seeds": [1, 9]}, ["studies.found", "9"]),
        ({"runs": [{}]}, {}, ["studies.found", "runs"]),
        ({}, {"trials": 2, "methods": ["fedpub"]}, ["trials is 2", "fedpub", "4"]),
        ({}, {"setting": "quick,learning_rate=0.5"}, ["settings.search", "learning_rate 0.5"]),
        ({}, {"setting": "slow"}, ["slow"]),
        ({}, {"setting": {"most": "quick"}}, ["search.setting", "most", "mini"]),
        ({}, {"datasets": ["mini", "more"], "setting": {"more": "quick"}}, ["mini", "default"]),
        ({}, {"methods": ["fedprox,mu=1"]}, ["methods.0", "fedprox,mu=1"]),
        ({}, {"methods": ["fedprx"]}, ["fedprx", "fedprox"]),
        ({}, {"datasets": ["mimi"]}, ["mimi", "mini"]),
        ({}, {"datasets": ["webkb"], "methods": ["fedgcn"]}, ["search", "fedgcn"]),
        ({}, {"setting": "quick,full_batch=true", "methods": ["feddep_joint"]}, ["full_batch"]),
        ({"splits": {"random": {"train": [0.5, 0.6]}}}, {}, ["studies.found.search", "splits"]),
    ],
)
def test_what_is_refused_when_planning(
    study: dict[str, Any], changes: dict[str, Any], words: list[str], tmp_path: Path
):
    with pytest.raises(ConfigError) as error:
        plan.stages(config_in(tmp_path, study, **changes), "found")
    assert all(word in str(error.value) for word in words), error.value
