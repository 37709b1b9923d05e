"""A reader of files .adjlist: lines ``class: neighbours``; features are degrees."""

import numpy as np

from feddep.graph.graph import Graph


def read(path):
    lines = [line.split(":") for line in path.read_text().splitlines()]
    labels = np.array([int(label) for label, _ in lines])
    near = [[int(other) for other in others.split()] for _, others in lines]
    edges = [(node, other) for node, others in enumerate(near) for other in others]
    degrees = np.array([[1.0, len(others)] for others in near])
    return Graph.from_edges(np.array(edges), degrees, labels, int(labels.max()) + 1)


READERS = {"adjlist": read}
