"""Time and peak memory of every stage of the workflow over the size of the graph, from 10,000 nodes
to ten million.

    python -m benchmarks.scaling --output benchmarks/results --sizes 10000 100000 1000000 10000000

Each graph is synthetic, with five times as many edges as nodes and 100 nodes a community; it is
divided along communities that igraph finds among 10 clients, or more where a client would have over
100,000 nodes.  FedAvg and FedDEP are trained for 2 rounds, FedDEP's local GNNs for 2 epochs.
Seconds and CPU time of a stage are those that Snakemake measures of its job; peak memory is what
the job says of itself: the resident set, with the pages of files that are read in place.  With
``--work DIR`` the same command goes on after a crash.
"""

import argparse
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.arguments import add_work, work_folder
from benchmarks.workflow import jobs, snakemake
from feddep.experiment.provenance import environment
from feddep.reporting import drawing
from feddep.reporting.labels import method_title
from feddep.reporting.output import write
from feddep.utils.csv_files import write_csv
from feddep.utils.files import read_json, write_json

CLIENTS, OF_A_CLIENT, ROUNDS = 10, 100_000, 2


def configuration(nodes: int, output: Path, method: str) -> dict[str, Any]:
    """The configuration of one size and method."""
    graph = {"nodes": nodes, "classes": 10, "communities": nodes // 100, "features": 100}
    return {
        "output": str(output),
        "records": {"use": False},
        "datasets": {
            "large": {"synthetic": {**graph, "degree_within": 8.0, "degree_between": 2.0}}
        },
        "clients": [max(CLIENTS, nodes // OF_A_CLIENT)],
        "seeds": [0],
        "partition": {"engine": "igraph"},
        "settings": {"few": {"rounds": ROUNDS, "batch_size": 512}},
        "tables": [{"setting": "few", "datasets": ["large"], "methods": [method]}],
        "methods": {"feddep": {"pretraining_epochs": ROUNDS}},
        "studies": [],
    }


def measure(nodes: int, folder: Path) -> pd.DataFrame:
    """A row a job of the whole pipeline; trainings are named by their methods."""
    output = folder / str(nodes)
    # Each method, and each step of it, in a process of its own.
    for method, target in (("fedavg", "main"), ("feddep", "generator"), ("feddep", "main")):
        config = folder / f"{nodes}_{method}.json"
        write_json(config, configuration(nodes, output, method))
        subprocess.run(snakemake(target, config), check=True)
    (facts,) = (output / ".cache" / "graphs").glob("*.json")
    rows = jobs(output)
    rows["stage"] = [
        method_title(method) if method else stage
        for stage, method in zip(rows["stage"], rows["method"], strict=True)
    ]
    rows.insert(0, "nodes", nodes)
    rows.insert(1, "edges", read_json(facts)["edges"])
    return rows.drop(columns=["dataset", "method"])


def plot(table: pd.DataFrame) -> Figure:
    """Seconds and peak memory of the stages that grow, over the number of nodes, on logarithmic
    axes; and a linear rule.
    """
    table = table[table["stage"] != "split"]
    with drawing.style():
        figure, ((left, right),) = drawing.panels(1, 2, 2.2)
        looks = drawing.looks(
            {
                stage: stage.lower() if stage in ("FedAvg", "FedDEP") else None
                for stage in table["stage"]
            }
        )
        for stage, rows in table.groupby("stage", sort=False):
            look: dict[str, Any] = {**looks[stage], "markersize": 4, "label": stage}
            left.plot(rows["nodes"], rows["seconds"], **look)
            right.plot(rows["nodes"], rows["peak_mib"], **look)
        ends = table["nodes"].agg(["min", "max"]).to_numpy()
        rule = table["seconds"].max() * ends / ends[-1]
        left.plot(ends, rule, color=drawing.INK, linewidth=0.8, linestyle=":", label="linear")
        for ax, what in ((left, "time of the job, s"), (right, "peak memory, MiB")):
            ax.set(xscale="log", yscale="log", xlabel="nodes", ylabel=what)
        # Of stages that all sizes have.
        ends = table.pivot(index="stage", columns="nodes", values="seconds").dropna().sum()
        title = (
            f"{ends.index[-1] / ends.index[0]:.0f} times the nodes take "
            f"{ends.iloc[-1] / ends.iloc[0]:.0f} times the time"
        )
        drawing.head(
            figure,
            f"{title}\nTime and memory of the stages of the workflow",
            left.get_legend_handles_labels()[0],
        )
    return figure


def main() -> None:
    """Measure every size; write ``scaling.csv``, its provenance and its figure, again after
    each.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results"), help="folder to write to"
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[10_000, 100_000, 1_000_000],
        help="numbers of nodes",
    )
    add_work(parser)
    arguments = parser.parse_args()
    frames = []
    with work_folder(arguments.work) as folder:
        for nodes in arguments.sizes:
            frames.append(measure(nodes, folder))
            table = pd.concat(frames)
            write_csv(arguments.output / "scaling.csv", table, digits=4)
            write_json(arguments.output / "scaling.provenance.json", environment("cpu", 1))
            write(arguments.output, {"scaling": plot(table)})
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
