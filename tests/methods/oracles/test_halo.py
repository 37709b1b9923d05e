"""FedAvg's oracle: FedAvg where nothing is missing, the global graph's neighbourhoods where
something is.
"""

import numpy as np

from feddep.methods.basic import fedavg
from feddep.methods.oracles import HaloParameters
from feddep.methods.oracles.true_neighbours import extended, run_fedavg
from feddep.training.evaluator import Evaluator
from method_tasks import same_runs, task_of, without_cross_edges


def test_without_cross_client_edges_it_is_fedavg_to_the_last_bit():
    task = without_cross_edges("fedavg_oracle")
    assert same_runs(run_fedavg(task, HaloParameters()), fedavg.run(task))


def test_halo_nodes_are_neither_trained_nor_validated_on():
    task = task_of("fedavg_oracle")
    assert task.partition is not None
    parts = extended(task, 2)
    for client, ((graph, split), (plain, own)) in enumerate(
        zip(parts, task.subgraphs(), strict=True)
    ):
        assert graph.num_nodes > plain.num_nodes
        assert graph.subgraph(np.arange(plain.num_nodes)).fingerprint == plain.fingerprint
        nodes = task.partition.nodes(client)
        for name in ("train", "val", "test"):
            assert np.array_equal(getattr(split, name), getattr(own, name))
            assert np.isin(nodes[getattr(split, name)], getattr(task.split, name)).all()


def test_with_a_hop_a_layer_a_client_sees_its_nodes_as_the_experimenter_does():
    task = task_of("fedavg_oracle")
    assert task.partition is not None
    model = task.new_model()
    everywhere = task.evaluator.logits(model)
    worst: dict[int, float] = {}
    for hops in (0, 1, 2):
        errors = []
        for client, (graph, _) in enumerate(extended(task, hops)):
            nodes = task.partition.nodes(client)
            own = Evaluator(graph).logits(model)[: len(nodes)]
            errors.append(float((own - everywhere[nodes]).abs().max()))
        worst[hops] = max(errors)
    assert worst[2] < 1e-5 < worst[1] < worst[0]


def test_without_hops_it_is_fedavg_and_null_means_as_many_hops_as_layers():
    task = task_of("fedavg_oracle")
    plain = fedavg.run(task)
    none, two, default = (run_fedavg(task, HaloParameters(hops=k)) for k in (0, 2, None))
    assert same_runs(none, plain)
    assert same_runs(default, two)
    assert not same_runs(two, plain)
    assert two.communication == plain.communication
