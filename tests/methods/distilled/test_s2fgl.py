"""S2FGL's scores, loss and repository against their equations with dense matrices."""

import dataclasses
from functools import partial

import numpy as np
import torch
from torch.nn.functional import cosine_similarity

from feddep.federation.boundary import Boundary, ByClient, schema_of
from feddep.federation.client import EXTRA, REPORTS, Update
from feddep.methods.basic import fedavg
from feddep.methods.distilled import S2FGLParameters
from feddep.methods.distilled.s2fgl import RepositoryServer, S2FGLClient, ranked
from feddep.training.task import Task
from graphs import random_graph
from method_tasks import task_of

PARAMETERS = S2FGLParameters(repository_weight=0.7, alignment_weight=0.3, tau=0.5)


def client_of(task: Task) -> S2FGLClient:
    down = {"repository": (4 * task.graph.num_classes, task.setting.hidden_channels)}
    kinds = {"model": schema_of(task.new_model()), **REPORTS, EXTRA: ByClient(down=[down])}
    new = partial(S2FGLClient, params=PARAMETERS)
    client = fedavg.new_client(task, 0, task.subgraphs()[0], Boundary(kinds), new)
    assert isinstance(client, S2FGLClient)
    return client


def test_scores_are_those_of_the_inverse():
    graph, train = random_graph(20, 40), np.array([1, 4, 7])
    walk = graph.adjacency.toarray() / np.maximum(graph.degrees, 1)[:, None]
    reached = np.linalg.inv(np.eye(20) - 0.15 * walk)[:, train]
    scores = reached.max(axis=1) + 0.85 * reached.sum(axis=1)
    np.testing.assert_allclose(scores[ranked(graph, train)], np.sort(scores)[::-1])


def test_the_loss_is_its_equations():
    task = task_of("s2fgl")
    client, model = client_of(task), task.new_model()
    weights = {name: each * 1.2 for name, each in model.state_dict().items()}
    client.load(weights)
    assert client.learner.penalty is None
    repository = torch.randn(4 * task.graph.num_classes, task.setting.hidden_channels)
    client.load({**weights, "repository": repository})
    taught, h = client.taught, client.taught.flip(1) + 0.1
    divergence = 0.0
    for v in range(len(h)):
        q, p = (
            (cosine_similarity(each[v][None], repository) / 0.5).softmax(dim=0)
            for each in (taught, h)
        )
        divergence += float((q * (q / p).log()).sum()) / len(h)
    vectors = []
    for each in (h[client.aligned], taught[client.aligned]):
        n = len(each)
        similar = torch.stack([cosine_similarity(row[None], each) for row in each])
        kept = similar * (similar.argsort(dim=1).argsort(dim=1) >= n - 4)
        laplacian = kept.sum(dim=1).diag() - kept
        found = torch.linalg.eigh((laplacian + laplacian.T).double() / 2).eigenvectors
        columns = [*range(n)][:10] + [*range(n)][-10:]
        vectors.append([torch.outer(found[:, i], found[:, i]).float() @ each for i in columns])
    distance = sum(float((a - b).square().mean()) for a, b in zip(*vectors, strict=True))
    expected = 0.7 * 0.25 * divergence + 0.3 * distance
    loss = client.penalty(client.model, h, h)
    torch.testing.assert_close(float(loss), expected, rtol=1e-3, atol=1e-5)


def test_what_is_sent_depends_on_labels_of_training_nodes_alone():
    task = task_of("s2fgl")
    labels = np.zeros_like(task.graph.labels)
    labels[task.split.train] = task.graph.labels[task.split.train]
    other = dataclasses.replace(task, graph=dataclasses.replace(task.graph, labels=labels))
    ours, theirs = (client_of(each).extra() for each in (task, other))
    assert all(torch.equal(ours[name], theirs[name]) for name in ("means", "shares"))
    assert 0 < ours["shares"].sum() < 1


def test_the_repository_is_the_mean_over_drawn_clients():
    server = RepositoryServer({}, seed=0)
    means, counts = torch.randn(3, 2, 4), torch.tensor([[1.0, 0], [3, 0], [4, 0]])
    updates = [
        Update(k, {}, 8 + k, 0.0, {"means": means[k], "shares": counts[k] / (8 + k)})
        for k in range(3)
    ]
    server.aggregate(updates)
    rows = server.weights_for(0)["repository"].view(4, 2, 4)
    pairs = [(a, b) for a in range(3) for b in range(a)]
    of_pairs = [
        (counts[a, 0] * means[a, 0] + counts[b, 0] * means[b, 0]) / (counts[a, 0] + counts[b, 0])
        for a, b in pairs
    ]
    assert all(any(torch.allclose(row[0], each) for each in of_pairs) for row in rows)
    assert (rows[:, 1] == 0).all()
