"""A method's row beside recorded ones."""

from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest
import yaml

from feddep import leaderboard
from feddep.config.loading import Config, validate
from feddep.config.loading import load as load_config
from feddep.experiment import plan, runs, search
from feddep.experiment.plan import Run, one_run
from feddep.experiment.verification import Trainer
from feddep.methods import registry
from feddep.reporting import load
from feddep.training.task import RunResult
from feddep.utils.errors import ConfigError, DivergenceError

RATES, SEARCHED, SEEDS = (0.05, 0.5), 9, (0, 1, 2)
OTHERS: dict[str, dict] = {"fedavg": {}, "local": {}}
TABLE = {"setting": "field", "datasets": ["mini"], "methods": ["fedavg"]}


def configuration(folder: Path, setting: dict | None = None, study: dict | None = None) -> Config:
    blocks = [
        {
            "settings": {"field": {"learning_rate": list(RATES)}},
            "seeds": [SEARCHED],
            "methods": OTHERS,
        },
        {"settings": {"field": {"learning_rate": 0.5}}, "seeds": list(SEEDS), "methods": OTHERS},
    ]
    field = {
        "rounds": 3,
        "hidden_channels": 8,
        "evaluation": "owners",
        "full_batch": True,
        "encoder": "gcn",
        **(setting or {}),
    }
    tuned = {"name": "mine", "kind": "tuned", "search_seeds": [SEARCHED], "runs": blocks}
    mini = {
        "synthetic": {"nodes": 120, "classes": 3, "communities": 6, "features": 30},
        "split": {"method": "within_clients"},
    }
    raw = {
        **{
            "output": str(folder / "out"),
            "records": {"directory": str(folder / "runs")},
            "device": "cpu",
        },
        **{
            "datasets": {"mini": mini},
            "clients": [3],
            "seeds": [0],
            "partition": {"delta": 5},
            "settings": {"field": field},
        },
        "tables": [TABLE],
        "studies": [study or tuned],
    }
    return validate(raw)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A study whose runs are recorded."""
    made = configuration(tmp_path)
    leaderboard.train(made, plan.study_runs(made, "mine"), tmp_path)
    return made


def recorded(config: Config, trained: list[Run]) -> pd.DataFrame:
    return load.tidy(runs.load(config, trained))


def test_a_method_has_fedavgs_trials_and_the_seeds_of_the_table(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = leaderboard.ranked(config, "mine", "mini", "fedprox,mu=0.1", tmp_path)

    def run(method: str, rate: float, seed: int) -> Run:
        setting = f"field,learning_rate={rate}"
        return one_run(config, method, 3, seed, setting=setting, dataset="mini")

    trials = [run("fedprox,mu=0.1", rate, SEARCHED) for rate in RATES]
    scores = recorded(config, trials)["validation"]
    best = scores.idxmax()
    final = [run("fedprox,mu=0.1", RATES[best], seed) for seed in SEEDS]
    assert found == (len(RATES), scores.max(), final)

    monkeypatch.setattr(Trainer, "train", Mock(side_effect=AssertionError))  # all is at hand
    assert leaderboard.ranked(config, "mine", "mini", "fedprox,mu=0.1", tmp_path) == found
    contents = leaderboard.contents(config, "mine", {"mini": found})
    (row,) = contents["table.csv"].to_dict("records")
    of_fedprox = recorded(config, final)["test"]
    baseline = recorded(config, [run("fedavg", 0.5, seed) for seed in SEEDS])["test"]
    assert row["mean"] == pytest.approx(of_fedprox.mean())
    assert row["mean_difference"] == pytest.approx((of_fedprox - baseline).mean())
    said = yaml.safe_load(contents["row.yaml"])
    assert said["search"]["chosen"] == {"mini": f"{final[0].setting} {final[0].method}"}
    assert [each["key"] for each in said["runs"]["mini"]] == [run.key for run in final]
    assert said["claims"]["mini"]["test"] == pytest.approx(of_fedprox.mean(), abs=1e-6)
    assert said["verdicts"]["mini"]["verdict"] == row["verdict"]


def test_each_trial_has_a_point_of_the_methods_own_space(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The defaults and what makes it FedAvg come first; all have FedAvg's settings."""
    train = Mock(side_effect=InterruptedError)
    monkeypatch.setattr(leaderboard, "train", train)
    with pytest.raises(InterruptedError):
        leaderboard.ranked(config, "mine", "mini", "moon,temperature=0.3", tmp_path)
    tried = train.call_args.args[1]
    assert [run.setting.options["learning_rate"] for run in tried] == list(RATES)
    assert [run.method.options["mu"] for run in tried] == [1.0, 0.0]
    assert {run.method.options["temperature"] for run in tried} == {0.3}
    moon = registry.find("moon")
    points = search.points(moon, moon.parameters().model_dump(), (), 20)
    assert len({point["mu"] for point in points[2:] if {*point} == {*moon.search}}) == 18


@pytest.mark.slow
def test_a_method_is_searched_as_those_of_the_table_were(tmp_path: Path):
    """It has the runs that it would have as one of them."""
    search = {"setting": "field", "clients": 3, "trials": 4, "seeds": [0, 1]}
    search["datasets"] = ["mini,features=row"]
    made = []
    for methods in (["fedavg", "fedper"], ["fedavg", "fedprox"]):
        study = {"name": "mine", "kind": "searched", "search": {**search, "methods": methods}}
        made.append(configuration(tmp_path, {"hidden_channels": 16}, study))
    leaderboard.search(made[0], "mine", tmp_path)
    found = leaderboard.ranked(made[0], "mine", "mini", "fedprox", tmp_path)
    assert {run.dataset.label for run in found.runs} == {"mini,features=row"}
    assert all(runs.are_trained(made[1], stage) for stage in plan.stages(made[1], "mine"))
    choice = plan.choices(made[1], "mine").set_index("method").loc["fedprox"]
    labels = {(run.setting.label, run.method.label) for run in found.runs}
    assert labels == {(choice["chosen_setting"], choice["chosen_method"])}
    assert found[:2] == (choice["trials"], choice["validation"])


def test_a_trial_that_diverges_is_not_chosen(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    train = Trainer.train

    def fails_fast(trainer: Trainer, run: Run) -> RunResult:
        if "0.5" in run.setting.label:
            raise DivergenceError("the loss is inf")
        return train(trainer, run)

    monkeypatch.setattr(Trainer, "train", fails_fast)
    found = leaderboard.ranked(config, "mine", "mini", "fedprox", tmp_path)
    assert {run.setting.options["learning_rate"] for run in found.runs} == {0.05}
    assert len(found.runs) == len(SEEDS)
    monkeypatch.setattr(Trainer, "train", Mock(side_effect=DivergenceError("the loss is inf")))
    with pytest.raises(ConfigError):
        leaderboard.ranked(config, "mine", "mini", "fedadam", tmp_path)


def test_a_pooled_study_has_the_graphs_of_those_that_it_names():
    config = load_config()
    tuned, graphs = (plan.compared_runs(config, name) for name in ("field_tuned", "field_graphs"))
    assert plan.compared_runs(config, "field_pooled") == graphs | tuned
    assert len(graphs | tuned) == 14
    with pytest.raises(ConfigError):
        plan.compared_runs(config, "field_edges")


@pytest.mark.parametrize(
    ("study", "dataset", "method"),
    [("other", "mini", "fedprox"), ("mine", "cora", "fedprox"), ("mine", "mini", "local")],
)
def test_what_is_not_there_is_named(study: str, dataset: str, method: str, tmp_path: Path):
    with pytest.raises(ConfigError):
        leaderboard.ranked(configuration(tmp_path), study, dataset, method, tmp_path)
