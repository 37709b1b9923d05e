"""Time and peak memory of every stage of the workflow over the size of the graph, from 10,000 nodes to a million.

    python -m benchmarks.scaling --output benchmarks/results --sizes 10000 100000 1000000

Each graph is synthetic, with five times as many edges as nodes and 100 nodes a community; it is divided among 10 clients along
communities that igraph finds. FedAvg and FedDEP are trained for 2 rounds, FedDEP's local GNNs for 2 epochs.  Every stage is one
call of Snakemake: CPU time and memory are those of the call with its planning and all its processes (memory: of the largest),
seconds those of the job alone.
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

from benchmarks.workflow import snakemake
from feddep.experiment.provenance import environment
from feddep.reporting import drawing
from feddep.reporting.files import write_figure
from feddep.stages import flags
from feddep.utils.csv_files import write_csv
from feddep.utils.storage import read_result, write_json

CLIENTS, ROUNDS = 10, 2
RUNS = {name: f"few/large/m{CLIENTS}/{name.lower()}/seed0" for name in ("FedAvg", "FedDEP")}
STEPS = ("pretrain", "prototypes", "generator")


def stages(output: Path, config: Path) -> dict[str, tuple[Path, str]]:
    """What each stage is asked for, in the order of the DAG, and the pattern of its benchmark file."""
    command = [*snakemake(_metrics(output, "FedDEP"), config), "--summary"]
    planned = subprocess.run(command, capture_output=True, text=True, check=True)
    files = [Path(line.partition("\t")[0]) for line in planned.stdout.splitlines()]
    steps = {step: next(file for file in files if file.match(f"steps/{step}/large/*/*/seed0.json")) for step in STEPS}
    return {
        "prepare": (output / "graphs/large.json", "prepare/*.tsv"),
        "split": (output / "splits/large/seed0.safetensors", "split/**/*.tsv"),
        "partition": (output / f"partitions/large/m{CLIENTS}/seed0.json", "partition/**/*.tsv"),
        "FedAvg": (_metrics(output, "FedAvg"), f"classify/{RUNS['FedAvg']}.tsv"),
        **{step: (file, f"steps/{step}/**/*.tsv") for step, file in steps.items()},
        "FedDEP": (_metrics(output, "FedDEP"), f"classify/{RUNS['FedDEP']}.tsv"),
        "tables": (output / "tables/accuracy.md", "tables*"),
    }


def _metrics(output: Path, method: str) -> Path:
    return output / "runs" / RUNS[method] / "metrics.json"


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
        "tables": [{"setting": "few", "datasets": ["large"], "methods": ["fedavg", "feddep"]}],
        "methods": {"feddep": {"pretraining_epochs": ROUNDS}},
        "studies": [],
    }


def measured(target: Path, config: Path) -> tuple[float, float]:
    """CPU seconds and peak memory in MiB of the largest process of a call of Snakemake that makes a file."""
    process = subprocess.Popen(snakemake(target, config))
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{target} was not made")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(nodes: int, folder: Path) -> list[dict[str, Any]]:
    """A row a stage."""
    output, config = folder / str(nodes), folder / f"{nodes}.json"
    write_json(config, configuration(nodes, output))
    rows = []
    for stage, (file, pattern) in stages(output, config).items():
        cpu, memory = measured(file, config)
        edges = read_result(output / "graphs/large.json")["statistics"]["edges"]
        (found,) = (output / "benchmarks").glob(pattern)
        seconds = float(pd.read_csv(found, sep="\t")["s"].iloc[0])
        rows.append({"nodes": nodes, "edges": edges, "stage": stage, "seconds": seconds, "cpu_seconds": cpu, "peak_mib": memory})
        print(rows[-1], file=sys.stderr)
    return rows


def plot(table: pd.DataFrame) -> Figure:
    """Seconds and peak memory of the stages that grow, over the number of nodes, on logarithmic axes; and a linear rule."""
    table = table[~table["stage"].isin(["split", "tables"])]
    with drawing.style():
        figure, ((left, right),) = drawing.panels(1, 2, (6.4, 2.9))
        for k, (stage, rows) in enumerate(table.groupby("stage", sort=False)):
            look: dict[str, Any] = {"color": drawing.colour(k), "marker": drawing.MARKERS[k], "markersize": 4, "label": stage}
            left.plot(rows["nodes"], rows["seconds"], **look)
            right.plot(rows["nodes"], rows["peak_mib"], **look)
        ends = table["nodes"].agg(["min", "max"]).to_numpy()
        rule = table["seconds"].max() * ends / ends[-1]
        left.plot(ends, rule, color=drawing.INK, linewidth=0.8, linestyle=":", label="linear")
        for ax, what in ((left, "time of the job, s"), (right, "peak memory, MiB")):
            ax.set(xscale="log", yscale="log", xlabel="nodes", ylabel=what)
        drawing.legend(figure, left.get_legend_handles_labels()[0], 4)
    return figure


def main() -> None:
    """Measure every size; write ``scaling.csv``, its provenance and its figure, again after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"), help="folder to write to")
    parser.add_argument("--sizes", type=flags.count, nargs="+", default=[10_000, 100_000, 1_000_000], help="numbers of nodes")
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
