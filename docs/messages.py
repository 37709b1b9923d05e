"""What crosses a client's border: ``python docs/messages.py`` trains every method on Cora in ten
parts and writes ``docs/methods/messages.csv``, which cards show.
"""

import sys
from pathlib import Path

import pandas as pd

from feddep import api
from feddep.graph.graph import Graph
from feddep.methods import registry

FILE = Path(__file__).with_name("methods") / "messages.csv"
ROUNDS = (10, 12)


def measured(name: str, graph: Graph) -> pd.DataFrame:
    """The messages of a method with its defaults, means over clients.

    Returns:
        A row a method, direction (``up`` from a client, ``down`` to it) and kind: each_round, the
        messages in a round; once, further ones in a run; bytes, of a message.
    """
    method = registry.find(name)
    encoder = "gcn" if "gcn" in method.encoders else method.encoders[0]
    setting = {"full_batch": method.full_batch, "encoder": encoder, "batch_size": 256}
    split, partition = api.split(graph), api.partition(graph, 10) if method.partitioned else None
    sent = [
        api.run(name, graph, split, partition, setting={**setting, "rounds": rounds}).communication
        for rounds in ROUNDS
    ]
    clients = max(1, sent[0]["client"].nunique())
    fewer, more = (of.groupby(["direction", "kind"])[["messages", "bytes"]].sum() for of in sent)
    fewer = fewer.reindex(more.index, fill_value=0)
    found = pd.DataFrame(
        {
            "each_round": (more["messages"] - fewer["messages"]) / 2 / clients,
            "bytes": more["bytes"] / more["messages"],
        }
    )
    found["once"] = fewer["messages"] / clients - ROUNDS[0] * found["each_round"]
    return found.reset_index().assign(method=name)


def main() -> None:
    """Write the table, or anew the rows of the methods that are named."""
    graph = api.load_dataset("cora")
    chosen = sys.argv[1:] or list(registry.built_in())
    kept = pd.read_csv(FILE).query("method not in @chosen") if sys.argv[1:] else None
    table = pd.concat([kept, *(measured(name, graph) for name in chosen)])
    columns = ["method", "direction", "kind", "each_round", "once", "bytes"]
    table[columns].sort_values(columns[:3]).round(2).to_csv(FILE, index=False)


if __name__ == "__main__":
    main()
