"""A partitioner: clients take what random walks meet; the rest is dealt at random."""

import numpy as np

from feddep.utils.seeding import generator


def walks(graph, clients, seed):
    random, n = generator(seed, "walks"), graph.num_nodes
    owner, at = np.full(n, -1), random.choice(n, clients, replace=False)
    owner[at] = np.arange(clients)
    for _ in range(10 * n // clients):
        for client in range(clients):
            near = graph.adjacency[[at[client]]].indices
            if len(near):
                at[client] = random.choice(near)
                if owner[at[client]] < 0:
                    owner[at[client]] = client
    rest = owner < 0
    owner[rest] = random.integers(clients, size=rest.sum())
    return owner


PARTITIONERS = {"walks": walks}
