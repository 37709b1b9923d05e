"""GCFL+: distances, cuts, when clusters are split, and FedAvg as long as they are not."""

import itertools
import math

import numpy as np
import pytest
import torch

from feddep.federation.client import Update
from feddep.methods.mixtures import GCFLPlusParameters
from feddep.methods.mixtures.gcfl_plus import ClusteringServer, minimum_cut, time_warping


def warped(a, b):
    """The least cost of all warping paths, tried one by one."""
    if len(a) == 0 or len(b) == 0:
        return 0.0 if len(a) == len(b) else math.inf
    return (a[-1] - b[-1]) ** 2 + min(warped(a[:-1], b[:-1]), warped(a[:-1], b), warped(a, b[:-1]))


def test_distances_are_those_of_the_best_warping():
    sequences = np.random.default_rng(0).normal(size=(4, 5))
    found = time_warping(sequences)
    for i, j in itertools.product(range(4), repeat=2):
        assert found[i, j] == pytest.approx(
            math.sqrt(warped(list(sequences[i]), list(sequences[j])))
        )


def test_the_cut_is_the_least_of_all():
    rng = np.random.default_rng(0)
    for _ in range(5):
        weights = np.triu(rng.random((5, 5)), 1)
        weights += weights.T

        def value(part, of=weights):
            rest = sorted(set(range(5)) - set(part))
            return of[np.ix_(sorted(part), rest)].sum()

        first, second = minimum_cut(weights)
        assert sorted([*first, *second]) == list(range(5))
        least = min(
            value(part) for size in (1, 2) for part in itertools.combinations(range(5), size)
        )
        assert value(first) == pytest.approx(least)
    assert sorted(map(len, minimum_cut(np.zeros((3, 3))))) == [1, 2]


CHANGES = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]


def rounds(number, changes=CHANGES, norms=(1.0, 1.1, 5.0, 5.2), **parameters):
    """The clusters after each round, in which clients change what they got by ``changes`` and send
    ``norms``.
    """
    server = ClusteringServer(
        {"w": torch.zeros(2)}, parameters=GCFLPlusParameters(sequence=3, after=4, **parameters)
    )
    found = []
    for _ in range(number):
        got = [server.weights_for(k)["w"] for k in range(4)]
        extra = [{"gradient_norm": torch.tensor(norm)} for norm in norms]
        updates = [
            Update(k, {"w": got[k] + torch.tensor(changes[k])}, k + 1.0, 0.0, extra[k])
            for k in range(4)
        ]
        server.aggregate(updates)
        found.append(server.clusters)
        for cluster in server.clusters:
            sent = sum((k + 1) * updates[k].weights["w"] for k in cluster) / sum(
                k + 1 for k in cluster
            )
            for k in cluster:
                torch.testing.assert_close(server.weights_for(k)["w"], sent)
    return found


def test_a_cluster_is_split_by_the_course_of_gradients():
    found = rounds(9)
    assert found[:4] == [[[0, 1, 2, 3]]] * 4  # not before round 5
    assert sorted(found[4]) == [[0, 1], [2, 3]]
    assert found[-1] == found[4]  # pairs stay


@pytest.mark.parametrize("parameters", [{"epsilon2": 1.5}, {"changes": [[0.3, 0.0], *CHANGES[1:]]}])
def test_a_cluster_that_moves_together_or_hardly_stays(parameters):
    assert rounds(9, **parameters)[-1] == [[0, 1, 2, 3]]


def test_after_a_split_norms_are_collected_anew():
    found = rounds(10, norms=(1.0, 1.0, 1.0, 9.0), epsilon1=9.0)
    assert [len(clusters) for clusters in found] == [1] * 4 + [2] * 3 + [3] * 3
