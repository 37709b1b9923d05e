"""FedDEP's oracle: the true mean embedding of each node's missing neighbours, and FedDEP's
classifier on it.
"""

from typing import Any

import pytest
import torch

from feddep.methods.feddep import pretraining
from feddep.methods.oracles.true_neighbours import mend_truly
from feddep.training.task import RunResult, Task
from method_tasks import CLIENTS, parameters_of, run_on, task_of

SMALL = {"embedding": 6, "pretraining_epochs": 2}


def run(task: Task | None = None, **changes: Any) -> RunResult:
    return run_on(
        task_of("feddep_oracle") if task is None else task, "feddep_oracle", **SMALL, **changes
    )


@pytest.mark.parametrize("encoder", ["local", "federated"])
def test_a_node_gets_the_mean_of_what_other_clients_computed_for_its_neighbours(encoder):
    task = task_of("feddep_oracle")
    parameters = parameters_of("feddep_oracle", **SMALL, encoder=encoder)
    assert task.partition is not None
    embeddings = pretraining.embed(task, parameters, {}).of_clients("embeddings")
    owned = [task.partition.nodes(i).tolist() for i in range(CLIENTS)]
    owner = task.partition.client
    graph, some = task.graph, 0
    for client, mended in enumerate(mend_truly(task, embeddings)):
        assert mended.shape == (len(owned[client]), 6)
        for k, v in enumerate(owned[client]):
            around = graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()
            missing = [u for u in around if owner[u] != client]
            found = [embeddings[owner[u]][owned[owner[u]].index(u)] for u in missing]
            expected = torch.stack(found).mean(dim=0) if found else torch.zeros(6)
            torch.testing.assert_close(mended[k], expected)
            some += bool(found)
    assert 0 < some < graph.num_nodes


def test_only_inference_differs_where_the_truth_is_known_there():
    task = task_of("feddep_oracle")
    zero, true = run(task), run(task, inference="generated")
    assert zero.curve["loss"] == true.curve["loss"]
    assert zero.curve["validation"] == true.curve["validation"]
    assert zero.curve["test"] != true.curve["test"]
