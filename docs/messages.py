"""What crosses a client's border: ``python docs/messages.py`` trains every method on Cora in ten
parts and writes ``docs/methods/messages.csv``, which cards show.
"""

from pathlib import Path

import pandas as pd

from feddep import api
from feddep.graph.graph import Graph
from feddep.methods import registry
from feddep.methods.method import Method


def measured(method: Method, graph: Graph) -> pd.DataFrame:
    """The messages of a method with its defaults, means over clients: those of 10 rounds, and what
    two more rounds add.

    Returns:
        A row a method, direction (``up`` from a client, ``down`` to it) and kind: each_round, the
        messages in a round; once, further ones in a run; bytes, of a message.
    """
    setting = {
        "full_batch": method.full_batch,
        "encoder": "gcn" if "gcn" in method.encoders else method.encoders[0],
        "batch_size": 256,
        "optimizer": "sgd",
    }
    split, partition = api.split(graph), api.partition(graph, 10) if method.partitioned else None
    counts = [
        api.run(method.name, graph, split, partition, setting={**setting, "rounds": rounds})
        .communication.groupby(["direction", "kind"])[["messages", "bytes"]]
        .sum()
        for rounds in (10, 12)
    ]
    clients = 10 if method.partitioned else 1
    more = counts[1]["messages"] / clients
    fewer = counts[0]["messages"].reindex(more.index, fill_value=0) / clients
    columns = {
        "each_round": (more - fewer) / 2,
        "once": fewer - 5 * (more - fewer),
        "bytes": counts[1]["bytes"] / counts[1]["messages"],
    }
    return pd.DataFrame(columns).round(2).reset_index().assign(method=method.name)


if __name__ == "__main__":
    cora = api.load_dataset("cora")
    table = pd.concat(measured(method, cora) for method in registry.built_in().values())
    table.to_csv(Path(__file__).with_name("methods") / "messages.csv", index=False)
