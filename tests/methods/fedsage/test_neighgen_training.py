"""Training and mending against loops over nodes, generated neighbours and candidates."""

import dataclasses

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, smooth_l1_loss

from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph, mean_adjacency
from feddep.graph.halo import within
from feddep.graph.impairing import impair
from feddep.graph.sampling import sample_trees
from feddep.graph.split import Split, random_split
from feddep.methods.fedsage import NeighGenParameters, neighgen_training
from feddep.methods.fedsage.mended_subgraph import MendedSubgraph, ReceptiveField
from feddep.methods.fedsage.neighgen import Generated
from feddep.methods.fedsage.neighgen_training import (
    HiddenNeighbours,
    Nearest,
    NeighGenTrainer,
    local_loss,
    new_neighgen,
    part_of,
)
from feddep.methods.shared.impairing_clients import impair_client
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.training.config import TrainingConfig
from feddep.training.evaluator import Evaluator
from feddep.training.task import Task
from graphs import graphs
from small_models import drawn

SLOTS = 4
WIDTHS = {"max_generated": SLOTS, "embedding": 8, "generator_width": 12}
EPOCHS = {"generator_local_epochs": 0, "generator_federated_epochs": 0, "generator_batch": 1000}
HOW = NeighGenParameters(
    hidden_share=0.3, generator_learning_rate=0.01, generator_weight_decay=0.0, **WIDTHS, **EPOCHS
)
GRAPH = planted_partition(160, 4, 8, 32, 6.0, 1.0, 8, 0.8, 0)
SPLIT = random_split(160, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
TASK = Task(
    "test",
    GRAPH,
    SPLIT,
    None,
    TrainingConfig(batch_size=16, fanout=3, hidden_channels=16, dropout=0.0),
    0,
)


def some(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.uniform(-1, 1, shape).astype(np.float32))


def generated_for(rng: np.random.Generator, nodes: int, features: int) -> Generated:
    """Slot by slot, as a generator gives them: slots 1 to k of a node are used."""
    wanted = rng.integers(0, SLOTS + 1, nodes)
    owner = np.concatenate([np.flatnonzero(wanted > slot) for slot in range(SLOTS)])
    count = torch.from_numpy(rng.uniform(0, 6, nodes).astype(np.float32)).requires_grad_()
    return Generated(
        count, torch.from_numpy(owner), some(rng, len(owner), features).requires_grad_()
    )


def trainer_of(how: NeighGenParameters, task: Task = TASK) -> NeighGenTrainer:
    client = (task.graph, task.split)
    return NeighGenTrainer(
        task,
        how,
        0,
        client,
        impair_client(task, how, 0, client),
        new_neighgen(task, how, "client0"),
    )


def test_the_nearest_node_is_the_same_whatever_the_block_size(monkeypatch):
    rng = np.random.default_rng(0)
    points, allowed = some(rng, 50, 32), rng.random((50, 160)) < 0.2
    search = Nearest(GRAPH.features)
    expected = [search.search(points), search.search(points, allowed)]
    monkeypatch.setattr(neighgen_training, "_BLOCK", 160 * 7)
    assert torch.equal(search.search(points), expected[0])
    assert torch.equal(search.search(points, allowed), expected[1])


@st.composite
def cases(draw: st.DrawFn):  # type: ignore[no-untyped-def]
    """An impaired graph, sampled nodes of it, and what is generated for them."""
    graph = draw(graphs())
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    nobody = np.zeros(0, dtype=np.int64)
    impaired = impair(graph, Split(nobody, nobody, nobody), draw(st.floats(0, 0.9)), "all", rng)
    kept = len(impaired.kept)
    nodes = np.sort(rng.permutation(kept)[: draw(st.integers(1, max(kept, 1)))])
    return graph, impaired, nodes, generated_for(rng, len(nodes), graph.num_features)


def by_hand(case, how: NeighGenParameters, slots: int) -> torch.Tensor:  # type: ignore[no-untyped-def]
    """Equation 4 as the paper writes it, one node, one neighbour, one candidate at a time."""
    graph, impaired, nodes, generated = case
    x = torch.from_numpy(graph.features.toarray())
    loss = torch.zeros(())
    for k, v in enumerate(nodes):
        hidden = [u for w, u in impaired.pairs.tolist() if w == v]
        loss = loss + how.count_weight * smooth_l1_loss(
            generated.count[k], torch.tensor(float(len(hidden)))
        )
        for p in range(len(generated.owner)):
            if generated.owner[p] == k and hidden:
                term = min(((generated.features[p] - x[u]) ** 2).sum() for u in hidden)
                loss = loss + how.feature_weight * (
                    term if how.scale == "paper" else term / (slots * x.shape[1])
                )
    return loss / len(nodes)


@given(cases(), st.floats(0, 2), st.floats(0, 2), st.sampled_from(["paper", "authors"]))
def test_the_local_loss_and_its_gradient_are_the_paper_s(case, count, feature, scale):
    graph, impaired, nodes, generated = case
    if not len(nodes):
        return
    how = HOW.replace(count_weight=count, feature_weight=feature, scale=scale)
    missing = torch.from_numpy(impaired.missing[nodes])
    ours = local_loss(generated, nodes, missing, HiddenNeighbours(graph.features, impaired), how)
    theirs = by_hand(case, how, SLOTS)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    inputs = (generated.count, generated.features)
    gradients = [
        torch.autograd.grad(each, inputs, allow_unused=True, materialize_grads=True)
        for each in (ours, theirs)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)


def test_the_task_loss_is_that_of_the_wholly_mended_graph():
    """Only the neighbourhood of the sampled nodes is mended; their logits are those of the graph
    that is mended everywhere.
    """
    how = HOW.replace(generator_batch=10, count_weight=0.0, feature_weight=0.0)
    trainer, impaired = trainer_of(how), impair_client(TASK, how, 0, (GRAPH, SPLIT))
    graph, nodes = impaired.graph, np.arange(40, 50)
    whole = generated_for(np.random.default_rng(0), graph.num_nodes, GRAPH.num_features)
    near = within(graph, nodes, 1)
    assert len(near) < graph.num_nodes
    ours = trainer._task_loss(part_of(whole, near), near, nodes)
    mended = dense_graph(
        MendedSubgraph(graph, whole.owner, whole.features.detach()), graph, whole.features.detach()
    )
    train = [v for v in nodes if impaired.kept[v] in SPLIT.train]
    logits = Evaluator(mended).logits(trainer.classifier)[train]
    torch.testing.assert_close(ours, cross_entropy(logits, torch.from_numpy(graph.labels[train])))
    assert torch.autograd.grad(ours, whole.features)[0].any()
    trainer._labels = torch.zeros_like(trainer._labels)  # class 0 is a label, too
    assert trainer._task_loss(part_of(whole, near), near, nodes) > 0


def test_it_learns_how_many_neighbours_are_missing_and_what_they_are_like():
    trainer = trainer_of(HOW.replace(task_weight=0.0))
    losses = [trainer.step() for _ in range(150)]
    # Although more neighbours are generated at the end, and the loss is summed over them.
    assert losses[-1] < losses[0]
    impaired = impair_client(TASK, HOW, 0, (GRAPH, SPLIT))
    trainer._whole = impaired.graph
    made = trainer.mend()
    assert made["features"].dtype == torch.float16
    rounded = made["count"].round().clamp(max=SLOTS).long()
    assert (
        made["owner"].tolist() == np.repeat(np.arange(impaired.graph.num_nodes), rounded).tolist()
    )
    assert np.corrcoef(made["count"], impaired.missing)[0, 1] > 0.8
    assert abs(made["count"].mean() - impaired.missing.mean()) < 0.3
    hidden = HiddenNeighbours(GRAPH.features, impaired)
    known = torch.from_numpy(impaired.missing)[made["owner"]] > 0
    features = made["features"].float()[known]
    target = hidden.nearest(features, made["owner"][known].numpy())
    assert (
        features - target
    ).square().sum() < 0.5 * target.square().sum()  # half of what zeros would have


def test_answers_of_others_are_added_to_the_gradient():
    """With α, λ^f and one plain gradient step, what is answered comes off the weights."""
    how = HOW.replace(feature_weight=0.5, cross_weight=3.0)
    gradient = {"heads.3.bias": torch.full((32,), 2.0), "heads.0.weight": torch.ones(32, 12)}
    weights = []
    for ask in (None, lambda request: gradient):
        trainer = trainer_of(how)
        trainer._optimizer = torch.optim.SGD(trainer.neighgen.parameters(), lr=1.0)
        trainer.step(ask)
        weights.append(trainer.neighgen.generator.state_dict())
    alone, asked = weights
    for name, weight in alone.items():
        expected = weight - 1.5 * gradient[name] if name in gradient else weight
        torch.testing.assert_close(asked[name], expected)


@st.composite
def mended_subgraphs(draw: st.DrawFn) -> tuple[MendedSubgraph, Graph, torch.Tensor]:
    """A mended subgraph, the client's own, and the features of generated nodes."""
    graph = draw(graphs())
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    owner = np.sort(rng.integers(0, graph.num_nodes, draw(st.integers(0, 8))))
    features = some(rng, len(owner), graph.num_features).half()
    return MendedSubgraph(graph, torch.from_numpy(owner), features), graph, features


def dense_graph(mended: MendedSubgraph, real: Graph, features: torch.Tensor) -> Graph:
    """The same graph with the generated features among the others."""
    x = np.concatenate([real.features.toarray(), features.float().numpy()])
    return dataclasses.replace(mended.graph, features=type(mended.graph.features)(x))


@given(mended_subgraphs())
def test_generated_nodes_have_their_owner_as_their_neighbour(case):
    mended, real, features = case
    graph = mended.graph
    n, g = real.num_nodes, len(features)
    assert graph.num_nodes == n + g
    assert graph.num_edges == real.num_edges + g
    dense = graph.adjacency.toarray()
    assert np.array_equal(dense, dense.T)
    assert np.array_equal(dense[:n, :n], real.adjacency.toarray())
    assert not dense[n:, n:].any()
    assert (dense[n:].sum(axis=1) == 1).all()
    assert (np.diff(graph.indices) > 0)[
        np.diff(np.repeat(np.arange(n + g), graph.degrees)) == 0
    ].all()


@given(mended_subgraphs(), st.integers(1, 3), st.integers(0, 2**16))
def test_a_lookup_is_that_of_a_graph_with_all_features_in_one_matrix(case, fanout, seed):
    mended, whole = case[0], dense_graph(*case)
    rng = np.random.default_rng(seed)
    trees = sample_trees(whole, rng.integers(0, whole.num_nodes, 5), (fanout,) * 2, rng)
    own, drawn = (part.reshape(-1, *part.shape[2:]) for part in trees.split(trees.nodes))
    weights = [
        some(np.random.default_rng(seed), 2 * whole.num_features, 3).requires_grad_()
        for _ in range(2)
    ]
    products = [
        table.joined(own, drawn) @ weight
        for table, weight in zip([mended.table, FeatureTable(whole.features)], weights, strict=True)
    ]
    torch.testing.assert_close(*products)
    for product in products:
        product.square().sum().backward()
    torch.testing.assert_close(weights[0].grad, weights[1].grad)


@given(mended_subgraphs(), st.integers(1, 3), st.integers(0, 2**16))
def test_logits_of_some_nodes_are_those_of_the_whole_mended_graph(case, layers, seed):
    """Whatever the number of layers, for real and generated nodes in any order; so are the
    gradients.
    """
    mended, real, features = case
    rng = np.random.default_rng(seed)
    nodes = rng.permutation(mended.graph.num_nodes)[: rng.integers(1, 4)]
    model = drawn(GraphSAGE(real.num_features, 6, 3, layers, 0.0))
    generated = features.float().requires_grad_()
    ours = ReceptiveField(mended.graph, real.num_nodes, nodes, layers).logits(model, generated)
    whole = dense_graph(*case)
    x = torch.from_numpy(whole.features.toarray()).requires_grad_()
    theirs = model.full(x, torch.from_numpy(mean_adjacency(whole).toarray()))[nodes]
    torch.testing.assert_close(ours, theirs)
    of_ours = torch.autograd.grad(ours.square().sum(), [generated, *model.parameters()])
    of_x, *of_weights = torch.autograd.grad(theirs.square().sum(), [x, *model.parameters()])
    torch.testing.assert_close(of_ours, (of_x[real.num_nodes :], *of_weights))


@given(mended_subgraphs(), st.integers(0, 2**16))
def test_evaluation_is_that_of_a_graph_with_all_features_in_one_matrix(case, seed):
    mended, real, _ = case
    rng = np.random.default_rng(seed)
    model = drawn(GraphSAGE(real.num_features, 6, 3, 2, 0.0))
    plain = Evaluator(dense_graph(*case))
    torch.testing.assert_close(mended.logits(model), plain.logits(model))
    for _ in range(2):  # asked about other nodes the second time
        nodes = np.flatnonzero(rng.random(real.num_nodes) < 0.5)
        split = Split(nodes[:0], nodes[:0], nodes)
        assert mended.counts(model, split) == plain.counts(model, split)
