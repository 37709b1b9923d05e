"""The embedding oracle: the true mean embedding of each node's missing neighbours, and FedDEP's classifier on it."""

import dataclasses
from typing import Any

import pytest
import torch
from test_frameworks import CLIENTS, problem_of

from feddep import pretraining
from feddep.frameworks import embedding_oracle, feddep, feddep_wo_dgen
from feddep.frameworks.embedding_oracle import Parameters, mend_truly
from feddep.problem import Outcome, Problem
from feddep.steps import make_all

SMALL = {"embedding": 6, "pretraining_epochs": 2}


def run(problem: Problem | None = None, **changes: Any) -> Outcome:
    return embedding_oracle.run(problem_of("embedding_oracle") if problem is None else problem, Parameters(**SMALL, **changes))


@pytest.mark.parametrize("encoder", ["own", "common"])
def test_a_node_gets_the_mean_of_what_other_clients_computed_for_its_neighbours(encoder):
    problem, parameters = problem_of("embedding_oracle"), Parameters(**SMALL, encoder=encoder)
    assert problem.partition is not None
    embeddings = pretraining.embed(problem, parameters, {}).of_clients("embeddings")
    owned = [problem.partition.nodes(i).tolist() for i in range(CLIENTS)]
    owner = problem.partition.client
    graph, some = problem.graph, 0
    for client, mended in enumerate(mend_truly(problem, embeddings)):
        assert mended.shape == (len(owned[client]), 6)
        for k, v in enumerate(owned[client]):
            around = graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()
            missing = [u for u in around if owner[u] != client]
            found = [embeddings[owner[u]][owned[owner[u]].index(u)] for u in missing]
            expected = torch.stack(found).mean(dim=0) if found else torch.zeros(6)
            torch.testing.assert_close(mended[k], expected)
            some += bool(found)
    assert 0 < some < graph.num_nodes


def test_one_client_lacks_nothing():
    problem = problem_of("embedding_oracle", clients=1)
    ours = run(problem)
    theirs = feddep_wo_dgen.run(problem, feddep_wo_dgen.Parameters(embedding=6, reading="unmended"))
    assert ours.histories[0].loss == theirs.histories[0].loss
    assert ours.histories[0].test == theirs.histories[0].test


def test_the_truth_reaches_the_classifier_and_each_encoder_has_its_own():
    unmended = feddep_wo_dgen.run(problem_of("embedding_oracle"), feddep_wo_dgen.Parameters(embedding=6, reading="unmended"))
    losses = [outcome.histories[0].loss[-1] for outcome in (unmended, run(), run(encoder="common"))]
    assert len(set(losses)) == 3


def test_only_inference_differs_where_the_truth_is_known_there():
    problem = problem_of("embedding_oracle")
    zero, true = run(problem), run(problem, inference="generated")
    assert zero.histories[0].loss == true.histories[0].loss
    assert zero.histories[0].validation == true.histories[0].validation
    assert zero.histories[0].test != true.histories[0].test


def test_pretraining_is_feddep_s_own():
    """The step is the same function with the same parameters: its cache serves both."""
    ours, theirs = embedding_oracle.steps(Parameters()), feddep.steps(feddep.Parameters())
    assert ours == theirs[:1]


def test_what_was_made_before_is_taken_as_it_is():
    problem, parameters = problem_of("embedding_oracle"), Parameters(**SMALL)
    made = make_all(problem, parameters, embedding_oracle.steps(parameters))
    resumed = dataclasses.replace(problem, made=made)
    assert run(resumed).histories[0].loss == run(problem).histories[0].loss


def test_the_ledger_counts_the_classifier_and_a_common_encoder():
    assert {row["kind"] for row in run().ledger} == {"model", "training", "validation"}
    assert {row["kind"] for row in run(encoder="common").ledger} == {"model", "encoder", "training", "validation"}


def test_parameters_are_feddep_s():
    assert dataclasses.asdict(Parameters()) == dataclasses.asdict(feddep.Parameters())
    with pytest.raises(ValueError, match="embedding must be at least 1"):
        Parameters(embedding=0)
