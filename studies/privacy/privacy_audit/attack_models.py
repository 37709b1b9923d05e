"""Attack models: classifiers trained on clients known to the adversary (shadow clients), applied to
the attacked one.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from feddep.utils import seeding
from feddep.utils.errors import ConfigError
from studies.privacy.privacy_audit.attack_statistics import auc

LEAST_CLIENTS = 3
"""One is attacked; of the others one is held out to select a model."""


def _logistic(seed: int) -> Any:
    imputer = SimpleImputer(strategy="constant", fill_value=0.0, add_indicator=True)
    return make_pipeline(imputer, StandardScaler(), LogisticRegression(C=1.0, max_iter=1000))


def _boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(
        max_iter=60, max_depth=4, learning_rate=0.1, random_state=seed % 2**32
    )


MODELS: Mapping[str, Callable[[int], Any]] = {"logistic": _logistic, "boosting": _boosting}
"""Logistic regression, and gradient boosting of shallow trees; both accept missing values (NaN)."""


class Predictions(NamedTuple):
    """Scores, shape (N,), the larger the likelier positive; and the name of the model used on each
    group.
    """

    scores: np.ndarray
    models: dict[int, str]


def standardise(features: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Standardise each column within each group, ignoring NaN; shape (N, k)."""
    result = np.empty(features.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of columns in which nothing is known
        for number in np.unique(group):
            part = features[group == number]
            deviation = np.maximum(np.nanstd(part, axis=0), 1e-12)
            result[group == number] = (part - np.nanmean(part, axis=0)) / deviation
    return result


def attack_each(
    features: np.ndarray,
    positive: np.ndarray,
    group: np.ndarray,
    seed: int,
    attacked: np.ndarray | None = None,
) -> Predictions:
    """Attack every group with a model trained on all others.

    Args:
        features: features of the candidates, shape (N, k); NaN where unknown.
        positive, group: the truth, and the client that each belongs to, both of shape (N,).
        seed: seed of the models.
        attacked: the candidates' features where their own group is the attacked one; by default
            ``features``.

    Raises:
        ConfigError: if there are fewer than :data:`LEAST_CLIENTS` groups.
    """
    attacked = features if attacked is None else attacked
    numbers = np.unique(group)
    if len(numbers) < LEAST_CLIENTS:
        raise ConfigError(
            f"there are {len(numbers)} clients; an attack that learns on others needs at least "
            f"{LEAST_CLIENTS}"
        )
    scores, models = np.empty(len(positive)), {}
    for number in numbers.tolist():
        target = group == number
        shadow = features[~target], positive[~target]
        models[number] = select_model(*shadow, group[~target], seed)
        scores[target] = fit_model(models[number], *shadow, seed)(attacked[target])
    return Predictions(scores, models)


def select_model(features: np.ndarray, positive: np.ndarray, group: np.ndarray, seed: int) -> str:
    """The model with the largest mean AUC when each of these groups is attacked from the others."""

    def mean_auc(model: str) -> float:
        found = []
        for number in np.unique(group):
            held = group == number
            if len(np.unique(positive[held])) == 2 and len(np.unique(positive[~held])) == 2:
                scores = fit_model(model, features[~held], positive[~held], seed)(features[held])
                found.append(auc(scores, positive[held]))
        return float(np.mean(found)) if found else 0.0

    return max(MODELS, key=mean_auc)


def fit_model(
    model: str, features: np.ndarray, positive: np.ndarray, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Train a model; returns a function from features to scores, the log-odds of being positive."""
    classifier = MODELS[model](seeding.derive_seed(seed, "attack", model))
    known = np.isfinite(features).any(axis=0)
    with threadpool_limits(1):  # sums are then added in one order, on every machine
        classifier.fit(features[:, known], positive)

    def scores(of: np.ndarray) -> np.ndarray:
        with threadpool_limits(1):
            return classifier.decision_function(of[:, known])

    return scores
