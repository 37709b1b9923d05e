"""FedSage's bound: its kernel against draws of weights, its quantities on a small graph."""

import numpy as np
import pandas as pd
from small import measured, of_run, page, run_of, small_task

from feddep.graph.graph import Graph
from feddep.methods import registry
from studies.fedsage.generalisation.measure import aggregated, kernel, measure
from studies.measuring import Case


def test_the_kernel_is_the_mean_over_weights_of_the_gradients_products():
    """F(h) = aᵀ σ(Wh): its gradient by a is σ(Wh), and by a row w of W, for a of 1, h where w is
    on.
    """
    draw = np.random.default_rng(0)
    h = draw.normal(size=(4, 3))
    h /= np.linalg.norm(h, axis=1, keepdims=True)
    hidden = h @ draw.normal(size=(3, 400_000))
    on, relu = (hidden > 0).astype(float), np.maximum(hidden, 0)
    expected = (relu @ relu.T + (h @ h.T) * (on @ on.T)) / hidden.shape[1]
    np.testing.assert_allclose(kernel(h, h), expected, atol=5e-3)


def test_nodes_of_equal_neighbourhoods_have_equal_inputs():
    graph = Graph.from_edges(
        [(0, 1), (1, 2), (3, 4)], np.eye(5, dtype=np.float32), np.array([0, 1, 0, 1, 0]), 2
    )
    inputs = aggregated(graph)
    np.testing.assert_allclose(inputs[1], [3**-0.5] * 3 + [0] * 2)
    np.testing.assert_array_equal(inputs[3], inputs[4])


def test_quantities_of_a_run_and_its_page():
    task = small_task(None)
    weights = task.new_model().state_dict()
    case = Case(run_of("fedavg", 0, None, "tiny"), task, registry.find("fedavg"), None, weights)
    rows = pd.DataFrame(measure(case)["generalisation"])
    assert rows["nodes"].tolist() == [100, 144, 144, 144, 144]
    assert (rows["distinct"] <= rows["nodes"]).all()
    assert (rows["bound"] > rows["term"]).all()
    assert (rows["permuted"] > rows["term"]).all()
    assert (rows["loss"] < rows["bound"]).all()
    np.testing.assert_allclose(rows["constant"], 1 / task.graph.num_classes)
    assert measured("generalisation", case)["clients"].isna().all()
    made = page(
        "generalisation", generalisation=[{**of_run(), **row} for row in rows.to_dict("records")]
    )
    assert made["table.csv"]["nodes"].tolist() == [100, 144]
