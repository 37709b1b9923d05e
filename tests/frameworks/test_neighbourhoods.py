"""What is told of mended neighbourhoods: averages over the right nodes, and every node counted once."""

import numpy as np
import pytest
from test_frameworks import problem_of

from feddep import frameworks, neighbourhoods
from feddep.errors import ConfigError
from feddep.frameworks import fedsage_plus
from feddep.halo import missing_neighbours
from feddep.neighbour_generation.quality import neighbourhood_distances
from feddep.problem import Problem
from feddep.steps import Made, make_all

PARAMETERS = fedsage_plus.Parameters(embedding=8, generator_width=8, local_epochs=2, federated_epochs=1)


@pytest.fixture(scope="module")
def case() -> tuple[Problem, Made]:
    problem = problem_of("fedsage_plus")
    return problem, make_all(problem, PARAMETERS, fedsage_plus.steps(PARAMETERS))["generator"]


def test_distances_are_averaged_over_all_nodes_and_over_those_that_miss_a_neighbour(case):
    problem, made = case
    rows = {(row["nodes"], row["neighbourhood"]): row for row in neighbourhoods.distances(problem, made)}
    assert list(rows) == [(nodes, name) for nodes in ("all", "missing") for name in neighbourhoods.NEIGHBOURHOODS]
    missing = np.diff(missing_neighbours(problem.graph, problem.partition).indptr) > 0
    mended = neighbourhood_distances(problem.graph, problem.partition, made).mended
    assert rows["all", "mended"]["mean"] == pytest.approx(mended.mean())
    assert rows["missing", "mended"]["mean"] == pytest.approx(mended[missing].mean())
    assert rows["missing", "mended"]["std"] == pytest.approx(mended[missing].std(ddof=1), rel=1e-5)
    assert rows["missing", "mended"]["count"] == missing.sum()
    # Who misses nobody has the true neighbourhood.
    assert rows["all", "local"]["mean"] * 240 == pytest.approx(rows["missing", "local"]["mean"] * missing.sum())


def test_every_node_is_counted_with_what_it_misses(case):
    problem, made = case
    rows = neighbourhoods.counts(problem, made)
    assert sum(row["nodes"] for row in rows) == 240
    lost = missing_neighbours(problem.graph, problem.partition).nnz
    assert sum(row["missing"] * row["nodes"] for row in rows) == lost
    assert sum(row["predicted"] * row["nodes"] for row in rows) == sum(
        np.rint(each.numpy()).sum() for each in made.of_clients("count")
    )


@pytest.mark.parametrize("name", ["global", "fedavg"])
def test_without_generated_features_there_is_nothing_to_compare(name, case):
    assert frameworks.load(name)
    for measure in (neighbourhoods.distances, neighbourhoods.counts):
        with pytest.raises(ConfigError, match=f"{name} generates no features of neighbours"):
            measure(problem_of(name), Made({}))
