"""The trials of a search, and what is chosen among them."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.experiment import search
from feddep.experiment.search import Trial
from feddep.methods import registry
from feddep.methods.method import Method
from feddep.training.config import FIELD, PROTOCOLS, SEARCH, TrainingConfig
from feddep.utils import spaces
from feddep.utils.errors import ConfigError

SETTING = TrainingConfig(**FIELD).model_dump(mode="json")
FEDPUB = registry.find("fedpub")
FEDPROX = registry.find("fedprox")
SHARE = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def defaults(method: Method) -> dict[str, Any]:
    return method.parameters().model_dump(mode="json")


def trials(
    method: Method, number: int = 16, seed: int = 0, space: Any = SEARCH, **setting: Any
) -> list[Trial]:
    return search.trials(method, space, {**SETTING, **setting}, defaults(method), number, seed)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "name", [name for name, each in registry.built_in().items() if each.search]
)
def test_every_method_can_be_searched(name: str, protocol: str):
    method, preset = registry.find(name), PROTOCOLS[protocol]
    setting = TrainingConfig(**preset["setting"]).model_dump(mode="json")
    if setting["encoder"] not in method.encoders:
        pytest.skip("it does not train the protocol's encoder")
    found = search.trials(method, preset["search"], setting, defaults(method), 12, 0)
    assert len(found) == 12
    drawn = [trial for trial in found if trial.setting]
    for trial in drawn:
        assert not spaces.outside(search.training_space(method, preset["search"]), trial.setting)
        assert not spaces.outside(method.search, trial.parameters)
        assert trial.setting["encoder"] in method.encoders


def test_default_published_and_fedavg_come_first():
    published = [{}, *FEDPUB.published]
    assert trials(FEDPUB)[: len(published)] == [Trial({}, given) for given in published]
    assert trials(FEDPROX)[:2] == [Trial({}, {}), Trial({}, {"mu": 0.0})]
    assert all(trial.setting for trial in [*trials(FEDPUB)[len(published) :], *trials(FEDPROX)[2:]])


def test_a_method_of_plain_sgd_has_trials_of_plain_sgd():
    first, *others = trials(registry.find("scaffold"))
    assert first.setting == {"optimizer": "sgd", "weight_decay": 0.0}
    assert {trial.setting["optimizer"] for trial in others} == {"sgd"}
    assert all(0.01 <= trial.setting["learning_rate"] <= 4 for trial in others)
    plain = trials(registry.find("scaffold"), optimizer="sgd", weight_decay=0.0)
    assert plain[0] == Trial({}, {})


def test_a_larger_budget_begins_with_the_same_trials():
    assert trials(FEDPROX, 40)[:9] == trials(FEDPROX, 9)
    assert len({str(trial) for trial in trials(FEDPROX, 40)}) == 40


def test_trials_follow_from_their_seed():
    assert trials(FEDPROX) == trials(FEDPROX)
    assert trials(FEDPROX)[2:] != trials(FEDPROX, seed=1)[2:]
    # Drawn once by SciPy 1.17: another sequence would make other runs of every recorded search.
    rate = [trial.setting["learning_rate"] for trial in trials(registry.find("fedavg"), 4)[1:]]
    assert rate == [0.0812, 0.0863, 0.226]


def test_the_space_is_filled_evenly():
    """Of 64 points each decade of the axis has a fourth."""
    numbers = [trial.parameters["mu"] for trial in trials(FEDPROX, 66)[2:]]
    counts, _ = np.histogram(np.log10(numbers), bins=[-3, -2, -1, 0, 1])
    assert sum(counts) == 64
    assert all(14 <= count <= 18 for count in counts)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"search": {"nu": spaces.log(0.1, 1)}}, ["methods.fedprox.search", "nu", "mu"]),
        ({"search": {"mu": spaces.linear(-1, 1)}}, ["methods.fedprox.search.mu", "-1"]),
        ({"search": {"mu": (0.01, "large")}}, ["methods.fedprox.search.mu", "large"]),
        ({"search": {"mu": spaces.log(0.1, 1)}}, ["methods.fedprox.search", "mu 0.01"]),
        ({"published": ({"nu": 1.0},)}, ["methods.fedprox.nu"]),
        ({"as_fedavg": {"mu": -1.0}}, ["methods.fedprox.mu", "-1"]),
        ({"encoders": ("gat",)}, ["settings.search", "encoder gcn"]),
    ],
)
def test_a_space_that_the_parameters_refuse(changed: dict[str, Any], words: list[str]):
    with pytest.raises(ConfigError) as error:
        trials(dataclasses.replace(FEDPROX, **changed))
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize("setting", [{"learning_rate": 0.5}, {"weight_decay": 0.001}])
def test_a_space_without_the_setting(setting: dict[str, Any]):
    (name,) = setting
    with pytest.raises(ConfigError, match=rf"settings.search.*{name}"):
        trials(FEDPROX, **setting)


@pytest.mark.parametrize("number", [1, 5])
def test_everybody_has_the_same_number_of_trials(number: int):
    """Four points, of which three are always tried."""
    method = dataclasses.replace(FEDPROX, search={"mu": (0.01, 0.1)}, published=({"mu": 1.0},))
    space = {"encoder": ("gcn",)}
    assert len(trials(method, 4, space=space)) == 4
    with pytest.raises(ConfigError, match="3 to 4"):
        trials(method, number, space=space)


@given(st.lists(SHARE | st.just(math.nan), min_size=1, max_size=12), st.integers(1, 6))
def test_the_best_are_the_first_of_all_in_order(values: list[float], number: int):
    ranked = sorted(enumerate(values), key=lambda each: (math.isnan(each[1]), -each[1]))
    numbers = [place for place, value in ranked if not math.isnan(value)]
    others = [place for place, value in enumerate(values) if math.isnan(value)]
    assert search.best(values, number) == (numbers + others)[:number]


@given(st.lists(st.lists(SHARE, min_size=3, max_size=3), min_size=2, max_size=4))
def test_the_best_mean_is_chosen(shares: list[list[float]]):
    means = {place: sum(map(Fraction, of)) / 3 for place, of in enumerate(shares)}
    found = search.choose(shares)
    assert all(means[found.trial] >= mean for mean in means.values())
    assert found.trial == min(n for n, mean in means.items() if mean == means[found.trial])
    others = {number: mean for number, mean in means.items() if number != found.trial}
    assert others[found.runner_up] == max(others.values())
    assert found.validation == pytest.approx(float(means[found.trial]))
    assert found.lead == pytest.approx(float(means[found.trial] - others[found.runner_up]))
    assert found.ties == sum(mean == means[found.trial] for mean in others.values())
