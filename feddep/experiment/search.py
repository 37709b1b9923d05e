"""A search of hyperparameters: which trials a method has, and which of them is chosen.

All trials are run on one seed, the best :data:`FINALISTS` on further seeds, and the best mean
validation over all of these seeds decides.  Nothing here trains or reads a run:
:mod:`feddep.experiment.plan` makes runs of trials.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from feddep.config.sentences import checked, join
from feddep.methods.method import Method
from feddep.training.config import TrainingConfig
from feddep.utils.errors import ConfigError, nearest
from feddep.utils.files import canonical_json
from feddep.utils.parameters import Parameters
from feddep.utils.spaces import Space, extremes, outside, point

FINALISTS = 4
"""Trials that are run on the further seeds."""


class Trial(NamedTuple):
    """What a trial changes of a setting and of a method's parameters."""

    setting: dict[str, Any]
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Choice:
    """The trial that was chosen.

    Attributes:
        trial: its place among the finalists.
        validation: its mean over the seeds.
        runner_up: the place of the second best.
        lead: how much better the mean is than that of the second best.
        ties: how many other trials have the same mean; the first is chosen.
    """

    trial: int
    validation: float
    runner_up: int
    lead: float
    ties: int


def training_space(method: Method, space: Space) -> Space:
    """What a method may try of the setting: what it can train with."""
    encoders = tuple(name for name in extremes(space["encoder"]) if name in method.encoders)
    return {**space, "encoder": encoders, **method.training}


def trials(
    method: Method,
    space: Space,
    setting: Mapping[str, Any],
    parameters: Mapping[str, Any],
    number: int,
    seed: int,
) -> list[Trial]:
    """The trials of a method: the setting and parameters as they are, with what its authors
    publish, and with what makes it FedAvg; then points of a scrambled Sobol sequence (Owen, 1998)
    in the space of both. More trials begin with the same ones.

    Args:
        method: the method.
        space: of the setting.
        setting: all fields where a trial changes none.
        parameters: the method's likewise.
        number: of trials, all different.
        seed: of the scrambling.

    Raises:
        ConfigError: if fields or parameters refuse something of their space, it lacks what they
            are where a trial changes none, or it has fewer different trials.
    """
    space = training_space(method, space)
    own = {name: of[0] for name, of in method.training.items() if setting[name] not in of}
    check("settings", space, TrainingConfig, {**setting, **own})
    fixed = _always(method, parameters)
    shares = _sobol(len(space) + len(method.search), 2 * number, seed)
    drawn = [
        Trial(point(space, each[: len(space)]), point(method.search, each[len(space) :]))
        for each in shares
    ]
    different: dict[str, Trial] = {}
    for trial in [*(Trial(own, dict(given)) for given in fixed), *drawn]:
        complete = [{**setting, **trial.setting}, {**parameters, **trial.parameters}]
        different.setdefault(canonical_json(complete), trial)
    if not len(fixed) <= number <= len(different):
        raise ConfigError(
            f"trials is {number}, but {method.name} takes {len(fixed)} to {len(different)}: "
            f"{len(fixed)} are always tried"
        )
    return list(different.values())[:number]


def points(
    method: Method, parameters: Mapping[str, Any], fixed: Collection[str], number: int
) -> list[dict[str, Any]]:
    """So many points in the space of a method alone, for trials whose settings are given: the
    parameters as they are, what its authors publish, what makes it FedAvg, and points of a
    scrambled Sobol sequence; what is ``fixed`` is not changed.

    Raises:
        ConfigError: as :func:`trials`.
    """
    space = {name: axis for name, axis in method.search.items() if name not in fixed}
    always = [
        {name: value for name, value in given.items() if name not in fixed}
        for given in _always(method, parameters)
    ]
    shares = _sobol(len(space), number, 0) if space else [()] * number
    return [*always, *(point(space, each) for each in shares)][:number]


def _always(method: Method, parameters: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What is always tried of a method's parameters."""
    check(f"methods.{method.name}", method.search, method.parameters, parameters)
    fixed = [{}, *method.published, *([] if method.as_fedavg is None else [method.as_fedavg])]
    for given in fixed:
        checked(method.parameters, {**parameters, **given}, ("methods", method.name))
    return fixed


def _sobol(dimensions: int, number: int, seed: int) -> np.ndarray:
    """At least so many points of a scrambled Sobol sequence, a row each."""
    from scipy.stats.qmc import Sobol  # slow to import

    return Sobol(dimensions, rng=seed).random_base2(math.ceil(math.log2(number)))


def check(path: str, space: Space, model: type[Parameters], options: Mapping[str, Any]) -> None:
    """Make sure that a space is one of a model's fields.

    Args:
        path: where the options stand in the configuration.
        space: the space.
        model: of the options.
        options: all of them, where a trial changes none.

    Raises:
        ConfigError: if a name or value is not allowed, or an option is not in the space.
    """
    for name, axis in space.items():
        if name not in model.model_fields:
            raise ConfigError(
                f"{join(path, 'search')} has {name}, which is no key of {path}; "
                f"{nearest(name, model.model_fields)}"
            )
        for value in extremes(axis):
            checked(model, {**options, name: value}, (path, "search"))
    if missing := outside(space, options):
        values = ", ".join(f"{name} {options[name]}" for name in missing)
        raise ConfigError(
            f"{join(path, 'search')} does not have {values}, the value without a search; the "
            "space must have it"
        )


def best(validation: Sequence[float], number: int = FINALISTS) -> list[int]:
    """The places of the best values, the best first, of equal ones the first; what is not a number
    is last.
    """
    worse = np.nan_to_num(-np.asarray(validation, dtype=float), nan=math.inf)
    return [int(place) for place in np.argsort(worse, kind="stable")[:number]]


def choose(validation: Sequence[Sequence[float]]) -> Choice:
    """The choice among finalists.

    Args:
        validation: of each of at least two trials the shares of validation nodes that are right,
            one a seed.
    """
    means = [math.fsum(of) / len(of) for of in validation]
    first, second = best(means, 2)
    return Choice(
        trial=first,
        validation=means[first],
        runner_up=second,
        lead=means[first] - means[second],
        ties=means.count(means[first]) - 1,
    )
