"""How many rows GCN's weights change, by random graphs with and without an edge."""

import itertools

import numpy as np
import pytest

from feddep.graph.degree_bounding import bounded_adjacency
from feddep.privacy.accountant import PrivacyError
from feddep.privacy.vesper_accounting import certified_guarantee
from feddep.privacy.vesper_sensitivity import Correction, VerticalTraining, changed_outputs, published_sensitivities
from message_changes import featureless, gcn


def training(layers: int, degree: int, aggregation: str = "vfgnn_gcn", **correction: object) -> VerticalTraining:
    given = Correction(**{"weights": "frozen", "one_shot": True, **correction})
    return VerticalTraining(1000, 10, 20, layers, degree, aggregation=aggregation, correction=given)


@pytest.mark.parametrize(("degree", "layers"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2)])
def test_no_more_rows_change_than_counted(degree: int, layers: int) -> None:
    """A row of VFGNN changes where one of the L-th power of the weights does."""
    rng, nodes, most = np.random.default_rng(degree), 18, 0
    for seed in range(400):
        edges = [pair for pair in itertools.combinations(range(nodes), 2) if rng.random() < 0.1 * degree] or [(0, 1)]
        pair = [bounded_adjacency(featureless(nodes, each), degree, seed).toarray().astype(float) for each in (edges, edges[1:])]
        one, other = (np.linalg.matrix_power(gcn(each), layers) for each in pair)
        most = max(most, int((np.abs(one - other) > 1e-12).any(1).sum()))
    bound = changed_outputs(training(layers, degree))
    assert bound is not None
    assert 0.6 * bound <= most <= bound
    assert bound == 2 * (degree + 1) or layers > 1


def test_any_number_of_rows_may_change_where_degrees_are_not_bounded_at_both_ends() -> None:
    for bounding in ("none", "receiver"):
        assert changed_outputs(training(1, 5, bounding=bounding)) is None
        with pytest.raises(PrivacyError, match=rf"^vfgnn_gcn with bounding '{bounding}' releases all nodes"):
            certified_guarantee(training(1, 5, bounding=bounding))
    assert changed_outputs(training(1, 5, "vfgnn", bounding="none")) == 2


def test_published_sensitivities_stay_as_published() -> None:
    assert published_sensitivities(training(2, 5)) == published_sensitivities(training(2, 5, "vfgnn"))
