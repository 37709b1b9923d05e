"""Degree histograms under (ε, 0)-edge-DP: sensitivity, law of the noise, noise that no two graphs
share, shares by hand.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import chisquare
from small import case_of, measured, of_run, small_task

from feddep.graph.graph import Graph
from graphs import random_graph
from studies.measuring import frame
from studies.vesper.degree_histograms.measure import (
    NOISE,
    SENSITIVITY,
    degree_histogram,
    private_degree_histogram,
)
from studies.vesper.degree_histograms.page import first_draws, shares


def test_an_edge_changes_the_histogram_by_up_to_four():
    """The paper's 2 is what an edge changes in the degrees, not in their counts."""
    changes = set()
    for seed in range(40):
        graph = random_graph(6, 7, seed=seed)
        fewer = Graph.from_edges(graph.edges()[1:], graph.features, graph.labels, graph.num_classes)
        changes.add(
            int(np.abs(degree_histogram(graph.degrees) - degree_histogram(fewer.degrees)).sum())
        )
    assert changes == {2, SENSITIVITY}


def test_the_noise_is_discrete_laplace():
    rng = np.random.default_rng(0)
    noise = np.concatenate(
        [private_degree_histogram(np.zeros(0, dtype=int), 2.0, rng) for _ in range(800)]
    )
    values = np.arange(-8, 9)
    ratio = math.exp(-2.0 / SENSITIVITY)
    expected = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
    seen = np.array([(noise == value).sum() for value in values] + [(np.abs(noise) > 8).sum()])
    assert chisquare(seen, len(noise) * np.append(expected, 1 - expected.sum())).pvalue > 1e-3
    k = np.arange(-4000, 4001)
    law = np.exp(-0.1 / 4 * np.abs(k))
    assert pytest.approx(np.sqrt((law / law.sum()) @ k**2)) == NOISE


def test_no_two_graphs_share_noise():
    task, draws = small_task(None), []
    for dataset, seed in (("cora", 0), ("cora,labelled=0.1", 0), ("pubmed", 0), ("cora", 1)):
        case = case_of("vertical_mlp", dataclasses.replace(task, seed=seed), dataset=dataset)
        rows = measured("degree_histograms", case)
        assert (rows["degree"].tolist(), set(rows["of"])) == (list(range(51)), {240})
        draws.append(rows["nodes"].to_numpy() - degree_histogram(task.graph.degrees))
        assert 0.5 * NOISE < draws[-1].std() < 2 * NOISE
    first, second, *others = draws
    assert (first == second).all()  # of the same graph a second draw would cost ε again
    assert all((first != other).any() for other in others)


def test_shares_by_hand():
    """Ten nodes of each degree on Cora; a second seed, and PubMed with a negative count."""
    rows = [
        {
            **of_run("vertical_mlp", seed, None, dataset),
            "degree": degree,
            "nodes": nodes,
            "of": 1000,
        }
        for dataset, seed, nodes in (("pubmed", 0, -5), ("cora", 1, 99), ("cora", 0, 10))
        for degree in range(51)
    ]
    first = first_draws(frame(rows))
    assert first["dataset"].unique().tolist() == ["cora", "pubmed"]
    assert set(first.loc[first["dataset"] == "cora", "nodes"]) == {10}
    found = shares(first[first["dataset"] == "cora"])
    assert [share for share, _ in found] == pytest.approx(
        [0.01, 0.03, 0.05, 0.10, 0.90, 0.80, 0.01]
    )
    assert found[3][1] == found[4][1] == pytest.approx(NOISE * 10**0.5 / 1000)
