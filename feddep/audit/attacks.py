"""Attack models: trained on clients whose edges the attacker knows, used on one whose edges it does not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from feddep import seeding
from feddep.audit import AuditError
from feddep.audit.scores import auc

LEAST_CLIENTS = 3
"""One is attacked; of the others one is held back to choose a model by."""


def _logistic(seed: int) -> Any:
    imputer = SimpleImputer(strategy="constant", fill_value=0.0, add_indicator=True)
    return make_pipeline(imputer, StandardScaler(), LogisticRegression(C=1.0, max_iter=1000))


def _boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(max_iter=60, max_depth=4, learning_rate=0.1, random_state=seed % 2**32)


MODELS: Mapping[str, Callable[[int], Any]] = {"logistic": _logistic, "boosting": _boosting}
"""Logistic regression, and gradient boosting of shallow trees; both take unknown values (NaN)."""


@dataclass(frozen=True, eq=False)
class Guesses:
    """What the attacker thinks.

    Attributes:
        scores: the larger, the likelier positive; shape (N,).
        models: the model that was used on each group, by its number.
    """

    scores: np.ndarray
    models: dict[int, str]


def standardised(features: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Each column less its mean and divided by its deviation within each group; what is unknown stays so."""
    found = np.full(features.shape, np.nan)
    for number in np.unique(group):
        of_group = group == number
        part = features[of_group]
        known = np.isfinite(part)
        count = np.maximum(known.sum(axis=0), 1)
        clean = np.where(known, part, 0)
        mean = clean.sum(axis=0) / count
        deviation = np.sqrt((np.where(known, part - mean, 0) ** 2).sum(axis=0) / count)
        found[of_group] = np.where(known, (part - mean) / np.maximum(deviation, 1e-12), np.nan)
    return found


def attack_each(features: np.ndarray, positive: np.ndarray, group: np.ndarray, seed: int) -> Guesses:
    """Attack every group with a model that was trained on all others.

    Args:
        features: what is known of each candidate, shape (N, k); NaN where nothing is.
        positive: the truth, shape (N,).
        group: the client that each belongs to, shape (N,).
        seed: seed of the models.

    Raises:
        AuditError: if there are fewer than :data:`LEAST_CLIENTS` groups.
    """
    numbers = np.unique(group)
    if len(numbers) < LEAST_CLIENTS:
        raise AuditError(
            f"there are {len(numbers)} clients; an attack that learns on others needs at least {LEAST_CLIENTS} (key clients)"
        )
    scores, models = np.empty(len(positive)), {}
    for number in numbers.tolist():
        target = group == number
        model = choose(features[~target], positive[~target], group[~target], seed)
        models[number] = model
        scores[target] = fitted(model, features[~target], positive[~target], seed)(features[target])
    return Guesses(scores, models)


def choose(features: np.ndarray, positive: np.ndarray, group: np.ndarray, seed: int) -> str:
    """The model with the best AUC, in the mean over these groups, where each is attacked from the others."""

    def quality(model: str) -> float:
        found = []
        for number in np.unique(group):
            held = group == number
            if len(np.unique(positive[held])) < 2 or len(np.unique(positive[~held])) < 2:
                continue  # nothing to tell apart
            found.append(auc(fitted(model, features[~held], positive[~held], seed)(features[held]), positive[held]))
        return float(np.mean(found)) if found else 0.0

    return max(MODELS, key=quality)


def fitted(model: str, features: np.ndarray, positive: np.ndarray, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """A trained model, as a function from features to scores: the log-odds of being positive."""
    made = MODELS[model](seeding.derive_seed(seed, "attack", model))
    known = np.isfinite(features).any(axis=0)
    with threadpool_limits(1):  # sums are then added in one order, on every machine
        made.fit(features[:, known], positive)

    def scores(of: np.ndarray) -> np.ndarray:
        with threadpool_limits(1):
            return made.decision_function(of[:, known])

    return scores
