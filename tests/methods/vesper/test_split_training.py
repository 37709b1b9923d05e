"""Vertical training: what crosses and what does not, what is trained, and that it is the training
of one model in one place.
"""

import copy
import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from feddep.graph.graph import Graph
from feddep.methods.vesper import MessagePassingParameters, WeightParameters, split_training
from feddep.methods.vesper.graph_party import GraphParty, RootBatches, noised_degrees
from feddep.methods.vesper.label_party import LabelParty
from feddep.methods.vesper.perturbed import Design
from feddep.methods.vesper.split_training import Protocol, SplitTraining, new_encoder
from feddep.training.task import Task
from graphs import star
from method_tasks import VERTICAL, observed, reachable, run_on, task_of, watch

TRAIN, VAL, TEST, NODES, WIDTH, LAYERS, BATCH, STEPS = 144, 48, 48, 240, 16, 2, 16, 9
EXCHANGES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in VERTICAL if name != "gap_authors"),
    ("gap_authors", {"encoder_epochs": 2}),
    ("vesper_gin", {"weights": "detached", "bounding": "both", "decoder": "gru"}),
    ("vesper_gcn", {"weights": "frozen", "release": "one_shot", "degree_ratio": 10.0}),
    ("vesper_gin", {"weights": "dpsgd"}),
    ("gap", {"release": "one_shot"}),
    ("vfgnn", {"encodings": True}),
]
EVERY = pytest.mark.parametrize(("name", "options"), EXCHANGES, ids=lambda value: str(value))


def exchanged(task: Task, name: str, options: dict[str, Any]) -> list[tuple[str, str, Tensor]]:
    """Run a method; direction, kind and content of everything that has crossed, in order."""
    _, crossed = observed(task, name, **options)
    assert all((each.client, list(each.payload)) == (0, ["values"]) for each in crossed)
    return [(each.direction, each.kind, each.payload["values"]) for each in crossed]


def changed(task: Task, **parts: Any) -> Task:
    return dataclasses.replace(task, graph=dataclasses.replace(task.graph, **parts))


def without_edges(task: Task) -> Task:
    return changed(
        task, indptr=np.zeros(NODES + 1, dtype=np.int64), indices=np.zeros(0, dtype=np.int32)
    )


@EVERY
def test_nothing_crosses_but_embeddings_of_the_width_and_their_gradients(name, options):
    task = task_of(name)
    crossed = exchanged(task, name, options)
    rows = {row.tobytes() for row in task.graph.features.toarray()}
    adjacency = {row.tobytes() for row in task.graph.adjacency.toarray()}
    for _, kind, values in crossed:
        assert values.dtype == torch.float32
        assert values.ndim == 3
        assert values.shape[2] == WIDTH != task.graph.num_features
        whole = values == values.round()
        assert not (whole.all() and values.abs().max() > 0), (
            f"{kind} looks like node ids, labels or counts"
        )
        for axis in range(3):
            lines = values.movedim(axis, -1).reshape(-1, values.shape[axis]).numpy()
            assert not any(
                line.tobytes() in rows or line.tobytes() in adjacency
                for line in lines
                if line.any()
            )
    ups = {kind for direction, kind, _ in crossed if direction == "up"}
    assert all("gradients" in kind for direction, kind, _ in crossed if direction == "down")
    assert not any("gradients" in kind for kind in ups)


@pytest.mark.slow
@EVERY
def test_what_crosses_before_the_first_gradient_knows_no_label(name, options):
    """Labels reach A by gradients alone: with other labels, all that A sends before the first one
    is the same.
    """
    task = task_of(name)
    other = changed(task, labels=(task.graph.labels + 1) % task.graph.num_classes)
    for (direction, kind, sent), (_, same_kind, same) in zip(
        *(exchanged(each, name, options) for each in (task, other)), strict=True
    ):
        if direction == "down":
            break
        assert kind == same_kind
        assert torch.equal(sent, same)
    else:
        # No gradient comes down then, or only before.
        assert options.get("release") == "one_shot" or name.startswith("gap")


@pytest.mark.parametrize(
    ("name", "options", "kinds"),
    [
        ("vertical_mlp", {}, ("representations", "gradients")),
        ("gap", {}, ("encodings", "gradients of encodings")),
        ("vesper_gin", {"encodings": True, "theta": 0.3, "weights": "detached"}, ()),
        (
            "vesper_gin",
            {"encodings": True, "theta": 0.3, "weights": "frozen", "release": "one_shot"},
            (),
        ),
    ],
)
def test_what_has_no_message_passing_knows_no_edge(name, options, kinds):
    """Messages of some kinds; and encodings, which are sent beside the layers."""
    task = task_of(name)
    for (_, kind, values), (_, _, others) in zip(
        *(exchanged(each, name, options) for each in (task, without_edges(task))), strict=True
    ):
        if kind in kinds:
            assert torch.equal(values, others)
        elif "representations" in kind and kinds != ("representations", "gradients"):
            if options:
                assert values.shape[1] == 1 + LAYERS
                assert torch.equal(values[:, 0], others[:, 0])
            # The comparison does find edges where they matter.
            assert not torch.equal(values[:, -1], others[:, -1])


@EVERY
def test_neither_party_has_a_way_to_what_the_other_holds(name, options):
    shown: list[SplitTraining] = []
    task = task_of(name)
    run_on(
        dataclasses.replace(task, inspectors=(lambda _, training: shown.append(training),)),
        name,
        **options,
    )
    graph, features = task.graph, task.graph.features
    parties = (shown[-1].party_a, shown[-1].party_b)
    held = {type(party): list(reachable(party)) for party in parties}

    def holds(party: type, wanted: np.ndarray) -> bool:
        return any(
            np.array_equal(item, wanted)
            for item in held[party]
            if isinstance(item, np.ndarray | Tensor) and not getattr(item, "requires_grad", False)
        )

    assert holds(GraphParty, features.data)  # the search does find what is there
    assert holds(LabelParty, graph.labels)
    assert not holds(GraphParty, graph.labels)
    for private in (features.data, features.indices, graph.indices, graph.indptr, graph.degrees):
        assert not holds(LabelParty, private)
    for party, other in ((GraphParty, LabelParty), (LabelParty, GraphParty)):
        kinds = {type(item) for item in held[party]}
        assert kinds.isdisjoint({other, Task, Graph, SplitTraining})
    first, second = (
        {id(item) for item in items if isinstance(item, torch.Generator | np.random.Generator)}
        for items in held.values()
    )
    assert first.isdisjoint(second)


@pytest.mark.parametrize("design", [None, Design("gin"), Design("gcn", min_degree=3)])
def test_split_training_is_the_training_of_one_model_in_one_place(design):
    """The chain rule across the boundary: one optimiser over all weights, one backward pass, the
    same weights.
    """
    task = task_of("vertical_gin", optimizer="sgd", learning_rate=0.5, dropout=0.0)
    protocol = Protocol(MessagePassingParameters(), design)
    training = SplitTraining(task, protocol, new_encoder(task, protocol.parameters))
    alone = copy.deepcopy(training.model)
    twin = SplitTraining(task, protocol, new_encoder(task, protocol.parameters))
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.5)
    x, labels = torch.from_numpy(task.graph.features.toarray()), torch.from_numpy(task.graph.labels)
    losses = []
    for _ in range(STEPS):
        batch = twin.party_b._batches.draw()
        if design is None:
            sent = [alone["encoder"](x[batch])]
        else:
            blocks = twin.party_a._sampler.draw(batch, LAYERS, twin.party_a._sampling["evaluation"])
            sent = alone["extractor"](alone["encoder"](x[blocks.nodes]), blocks, blocks.degrees)
        optimizer.zero_grad()
        loss = cross_entropy(alone["decoder"](torch.stack(sent, dim=1)), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert training.epoch() == pytest.approx(np.mean(losses), rel=1e-5)
    torch.testing.assert_close(
        [*training.model.parameters()], [*alone.parameters()], atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize(
    ("options", "moved"),
    [
        ({"weights": "trained"}, {"encoder", "extractor"}),
        ({"weights": "dpsgd"}, {"encoder", "extractor"}),
        ({"weights": "detached"}, {"extractor"}),
        ({"weights": "frozen", "encoder_epochs": 1}, {"encoder"}),
    ],
)
def test_which_weights_are_trained(options, moved):
    """Those that end with other values than in a run that cannot train."""
    still, run = (
        run_on(task_of("vesper_gin"), "vesper_gin", **{"encoder_epochs": 0, **each}).weights()
        for each in ({"weights": "frozen"}, options)
    )
    different = {key for key, tensor in run.items() if not torch.equal(tensor, still[key])}
    ours = {key for key in run if key.partition(".")[0] in ("encoder", "extractor")}
    assert different & ours == {key for key in ours if key.partition(".")[0] in moved}


def test_the_gradient_of_a_step_is_clipped_and_noised():
    task = task_of("vesper_gin", optimizer="sgd", learning_rate=1.0, dropout=0.0)

    def step(theta: float, clip: float, ratio: float) -> Tensor:
        parameters = WeightParameters(weights="dpsgd", clip=clip, gradient_ratio=ratio)
        protocol = split_training.perturbed(task, parameters, Design("gin", theta=theta))
        training = SplitTraining(task, protocol, new_encoder(task, parameters))
        part = torch.nn.ModuleList([training.model["encoder"], training.model["extractor"]])
        before = torch.nn.utils.parameters_to_vector(part.parameters()).detach().clone()
        training.party_a.update(training.party_b.learn(training.party_a.represent()))
        return torch.nn.utils.parameters_to_vector(part.parameters()).detach() - before

    assert float(step(0.0, 1e-3, 1.0).norm()) == pytest.approx(1e-3, rel=1e-2)
    assert float(step(2.0, 0.1, 3.0).std()) == pytest.approx(2.0 * 3.0 * 0.1, rel=0.1)


def test_all_that_is_evaluated_in_a_round_is_one_release(monkeypatch):
    """One message-flow graph of validation and test nodes together, so that each edge is read once
    a layer and round.
    """
    task = task_of("vesper_gin")
    training = SplitTraining(
        task,
        Protocol(MessagePassingParameters(), Design("gin")),
        new_encoder(task, WeightParameters()),
    )
    drawn = watch(monkeypatch, training.party_a._sampler, "draw")
    training.evaluate()
    assert [sorted(each["roots"]) for each in drawn] == [
        sorted([*task.split.val, *task.split.test])
    ]


def test_evaluating_does_not_change_the_training():
    def losses(evaluations: int) -> list[float]:
        task = task_of("vesper_gin")
        protocol = Protocol(
            WeightParameters(), Design("gin", theta=0.2), degree=2, bounding="sampled"
        )
        training, found = SplitTraining(task, protocol, new_encoder(task, protocol.parameters)), []
        for _ in range(2):
            found.append(training.epoch())
            for _ in range(evaluations):
                training.evaluate()
        return found

    assert losses(0) == losses(3)


@pytest.mark.parametrize("bounding", ["sampled", "both", "receiver", "none"])
def test_how_many_neighbours_are_heard(bounding):
    graph = star(6)
    sampler = split_training.new_sampler(
        graph, Protocol(MessagePassingParameters(), degree=2, bounding=bounding), 0
    )
    drawn = [sampler.draw(np.array([0]), 1, np.random.default_rng(seed)) for seed in range(20)]
    assert {len(blocks.indices) for blocks in drawn} == {6 if bounding == "none" else 2}
    assert (len({tuple(blocks.nodes) for blocks in drawn}) == 1) is (bounding != "sampled")
    leaves = sampler.draw(np.arange(1, 7), 1, np.random.default_rng(0))
    assert len(leaves.indices) == (2 if bounding == "both" else 6)


def test_noised_degrees_are_those_of_the_graph_and_drawn_once():
    graph = star(6)
    assert noised_degrees(graph, 4, 1e-9, 0).round().tolist() == [4, 1, 1, 1, 1, 1, 1]
    noise = noised_degrees(star(4000), 4, 3.0, 0) - np.minimum(star(4000).degrees, 4)
    assert noise.std() == pytest.approx(3.0, rel=0.1)
    np.testing.assert_array_equal(
        noised_degrees(graph, 4, 3.0, 0), noised_degrees(graph, 4, 3.0, 0)
    )


def test_batches_are_uniform_independent_and_the_same_for_both_parties():
    nodes = np.array([3, 5, 8, 9, 11, 20, 21])
    first, second = (RootBatches(nodes, 2, 0, "batches") for _ in "ab")
    drawn = np.array([np.sort(first.draw()) for _ in range(6000)])
    assert np.array_equal(drawn, [np.sort(second.draw()) for _ in range(6000)])
    pairs, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(pair) for pair in pairs} == set(itertools.combinations(nodes, 2))
    assert scipy.stats.chisquare(counts).pvalue > 0.001
    met = [bool(set(a) & set(b)) for a, b in itertools.pairwise(drawn)]
    assert np.mean(met) == pytest.approx(1 - (5 * 4) / (7 * 6), abs=0.03)
    assert RootBatches(nodes, 3, 0, "batches").in_epoch == 3
