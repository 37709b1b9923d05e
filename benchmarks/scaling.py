"""Time and peak memory of every stage of the workflow over the size of the graph, from 10,000 nodes to a million.

    python -m benchmarks.scaling --output benchmarks/results --sizes 10000 100000 1000000

Each graph is synthetic, with five times as many edges as nodes and 100 nodes a community; it is divided among 10 clients along
communities that igraph finds, and FedAvg is trained for 2 rounds.  Every stage is one call of Snakemake: CPU time and memory are
those of the call with its planning and all its processes (memory: of the largest), seconds those of the job alone.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.experiment.provenance import environment
from feddep.reporting import drawing
from feddep.reporting.files import write_figure
from feddep.utils.csv_files import write_csv
from feddep.utils.storage import read_result, write_json

CLIENTS, ROUNDS = 10, 2
RUN = f"few/large/m{CLIENTS}/fedavg/seed0"
STAGES = {
    "prepare": "graphs/large.json",
    "split": "splits/large/seed0.safetensors",
    "partition": f"partitions/large/m{CLIENTS}/seed0.json",
    "classify": f"runs/{RUN}/metrics.json",
    "tables": "tables/accuracy.md",
}
"""What each stage is asked for, in the order of the DAG."""


def configuration(nodes: int, output: Path) -> dict[str, Any]:
    """The configuration of one size."""
    graph = {"nodes": nodes, "classes": 10, "communities": nodes // 100, "features": 100}
    return {
        "output": str(output),
        "records": {"use": False},
        "datasets": {"large": {"synthetic": {**graph, "degree_within": 8.0, "degree_between": 2.0}}},
        "clients": [CLIENTS],
        "seeds": [0],
        "partition": {"engine": "igraph"},
        "settings": {"few": {"rounds": ROUNDS, "batch_size": 512}},
        "frameworks": {"fedavg": {}},
        "tables": [{"setting": "few"}],
        "studies": [],
    }


def measured(target: str, config: Path) -> tuple[float, float]:
    """CPU seconds and peak memory in MiB of the largest process of a call of Snakemake that makes a file."""
    command = [sys.executable, "-m", "snakemake", target, "--cores", "1", "--configfile", str(config), "--quiet", "all"]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{target} was not made")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(nodes: int, folder: Path) -> list[dict[str, Any]]:
    """A row a stage."""
    output, config = folder / str(nodes), folder / f"{nodes}.json"
    write_json(config, configuration(nodes, output))
    rows = []
    for stage, file in STAGES.items():
        cpu, memory = measured(str(output / file), config)
        edges = read_result(output / STAGES["prepare"])["statistics"]["edges"]
        (found,) = (output / "benchmarks").glob(f"{stage}*" if stage == "tables" else f"{stage}/**/*.tsv")
        seconds = float(pd.read_csv(found, sep="\t")["s"].iloc[0])
        rows.append({"nodes": nodes, "edges": edges, "stage": stage, "seconds": seconds, "cpu_seconds": cpu, "peak_mib": memory})
        print(rows[-1], file=sys.stderr)
    return rows


def plot(table: pd.DataFrame) -> Figure:
    """CPU time and peak memory of each stage over the number of nodes, on logarithmic axes, with a rule in proportion to it."""
    with drawing.style():
        figure, ((left, right),) = drawing.panels(1, 2, (6.4, 2.9))
        for k, (stage, rows) in enumerate(table.groupby("stage", sort=False)):
            look: dict[str, Any] = {"color": drawing.colour(k), "marker": drawing.MARKERS[k], "markersize": 4, "label": stage}
            left.plot(rows["nodes"], rows["cpu_seconds"], **look)
            right.plot(rows["nodes"], rows["peak_mib"], **look)
        ends = table["nodes"].agg(["min", "max"]).to_numpy()
        left.plot(
            ends, table["cpu_seconds"].max() * ends / ends[-1], color=drawing.INK, linewidth=0.8, linestyle=":", label="linear"
        )
        for ax, what in ((left, "CPU time, s"), (right, "peak memory, MiB")):
            ax.set(xscale="log", yscale="log", xlabel="nodes", ylabel=what)
        left.legend()
    return figure


def main() -> None:
    """Measure every size; write ``scaling.csv``, its provenance and its figure, again after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"), help="folder to write to")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="numbers of nodes")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for nodes in arguments.sizes:
            rows += measure(nodes, Path(folder))
            table = pd.DataFrame(rows)
            write_csv(arguments.output / "scaling.csv", table, digits=4)
            write_json(arguments.output / "scaling.provenance.json", environment("cpu", 1))
            write_figure(plot(table), arguments.output, "scaling")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
