"""FedGCN: sums after the exchange are those of the global graph, and with two hops so are its logits."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given

from divided import random_task, tasks
from feddep.federation.boundary import Boundary
from feddep.graph.graph import normalised_adjacency
from feddep.methods.fedgcn import fedgcn
from feddep.methods.shared.cross_edges import cross_edges
from feddep.nn.encoders import GCN
from feddep.training.evaluator import Evaluator
from method_tasks import run_on, task_of


@given(tasks())
def test_the_exchange_gives_the_rows_of_the_global_graph(task):
    edges = cross_edges(task)
    truth = (normalised_adjacency(task.graph) @ task.graph.features).toarray()
    for hops in (1, 2):
        boundary = Boundary(fedgcn._messages(task, edges, hops))
        for own, rows in zip(edges, fedgcn.exchange(task, boundary, edges, hops), strict=True):
            known = np.concatenate([own.nodes, own.outside]) if hops == 2 else own.nodes
            np.testing.assert_allclose(rows.numpy(), truth[known], rtol=1e-4, atol=1e-6)


def test_it_is_a_gcn_on_the_global_graph():
    task = random_task()
    model, plain = fedgcn.new_model(task), GCN(*task.model_sizes)
    plain.load_state_dict(model.state_dict())
    aggregated = normalised_adjacency(task.graph) @ task.graph.features
    summed = dataclasses.replace(task.graph, features=aggregated.tocsr())
    found = Evaluator(summed, "cpu", normalised_adjacency).logits(model)
    torch.testing.assert_close(found, Evaluator(task.graph, "cpu", normalised_adjacency).logits(plain), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hops", [1, 2])
def test_with_two_hops_owners_classify_as_on_the_global_graph(hops):
    history = run_on(task_of("fedgcn"), "fedgcn", hops=hops).histories[0]
    same = [right / nodes for right, nodes in history.local_before] == pytest.approx(history.test)
    assert same == (hops == 2)
