"""Results of runs that never were, written as the DAG writes them, with numbers that are easy to compute with."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feddep.config.loading import MEASURED, Config, validate
from feddep.experiment import keys, plan
from feddep.utils.files import write_json, write_result

ROUNDS = 4
BEST_ROUND = 3
CLIENT_OFFSETS = (-0.1, 0.1)
"""Accuracy of the clients' own models, from their mean: in turn below and above."""

# Test accuracy of each method at the best round, seeds 0, 1, 2.
BEST = {"global": (0.88, 0.89, 0.90), "local": (0.50, 0.52, 0.51), "fedavg": (0.85, 0.86, 0.87)}
LAST_BELOW_BEST = 0.02
VALIDATION_ABOVE_BEST = 0.01
MEGABYTE = 10**6


@dataclass
class Results:
    """A configuration and what its runs would have left behind."""

    root: Path
    datasets: dict[str, Any] = field(default_factory=lambda: {"cora": {"features": "raw"}})
    clients: tuple[int, ...] = (5, 10)
    seeds: tuple[int, ...] = (0, 1, 2)
    methods: tuple[str, ...] = ("global", "local", "fedavg")
    settings: tuple[str, ...] = ("feddep",)

    @property
    def raw(self) -> dict[str, Any]:
        """The configuration as a file would have it."""
        return {
            "output": str(self.root / "results"),
            "records": {"directory": str(self.root / "records"), "use": True},
            "datasets": self.datasets,
            "clients": list(self.clients),
            "seeds": list(self.seeds),
            "settings": {name: {"rounds": ROUNDS} for name in self.settings},
            "methods": {name: {} for name in self.methods},
            "tables": [{"setting": name} for name in self.settings],
        }

    @property
    def config(self) -> Config:
        """The configuration, with all defaults."""
        return validate(self.raw)

    @property
    def told(self) -> dict[str, Any]:
        """What of the configuration a provenance of the main tables tells."""
        return {key: value for key, value in self.config.items() if key not in ("studies", "audit", *MEASURED)}

    def runs(self) -> Iterator[plan.Run]:
        """Every run of the configuration."""
        yield from plan.runs(self.config)

    def metrics_path(self, run: plan.Run) -> Path:
        """Where the DAG writes a run's metrics."""
        return Path(self.config["output"], "runs", run.path, "metrics.json")

    def write(self) -> "Results":
        """Write the configuration, every run, and the statistics of graphs and partitions."""
        config = self.config
        write_json(self.root / "config.json", self.raw)
        for run in self.runs():
            write_result(self.metrics_path(run), self.metrics(run))
        output = Path(config["output"])
        for dataset in self.datasets:
            graph = {"nodes": 2708, "edges": 5278, "features": 1433, "classes": 7}
            content = {"key": keys.graph_key(config, dataset), "statistics": {"name": dataset, **graph}}
            write_result(output / "graphs" / f"{dataset}.json", content)
        for spec in plan.partitions(config):
            content = {"key": keys.partition_key(config, spec), "statistics": self.partition(spec)}
            write_result(output / "partitions" / f"{spec.path}.json", content)
        return self

    def metrics(self, run: plan.Run) -> dict[str, Any]:
        """A run's metrics: seed k gets the k-th of :data:`BEST`."""
        best = BEST[run.method][run.seed]
        own = [best + CLIENT_OFFSETS[client % 2] for client in range(run.clients or 0)] if run.method == "local" else []
        climb = [best - 0.3, best - 0.1, best, best - LAST_BELOW_BEST]
        communication = [
            {"client": client, "direction": direction, "kind": "model", "messages": ROUNDS, "bytes": ROUNDS * MEGABYTE}
            for client in range(run.clients or 0)
            for direction in ("down", "up")
            if run.method == "fedavg"
        ]
        return {
            "key": keys.run_key(self.config, run),
            "result": {
                "specification": keys.specification(self.config, run),
                "accuracy": {"best": best, "last": best - LAST_BELOW_BEST},
                "validation": {"best": best + VALIDATION_ABOVE_BEST, "last": best},
                "best_round": [2 + 2 * (client % 2) for client in range(len(own))] or BEST_ROUND,
                "clients": [
                    {"client": k, "nodes": 500, "train": 300, "accuracy": {"best": value, "last": value}}
                    for k, value in enumerate(own)
                ],
                "curve": {
                    "round": list(range(1, ROUNDS + 1)),
                    "loss": [2.0, 1.0, 0.5, 0.25],
                    "validation": [value + VALIDATION_ABOVE_BEST for value in climb],
                    "test": climb,
                },
                "communication": communication,
            },
            "provenance": {
                "git": {"commit": "c0ffee", "dirty": False},
                "packages": {"numpy": "2.0.0", "torch": "2.4.0" if run.seed else "2.5.0"},
                "device": "cpu",
                "time": f"2025-01-0{1 + run.seed}T12:00:00+00:00",
                "seconds": 1.5,
                "data_fingerprint": "f1" * 32,
            },
        }

    def partition(self, spec: plan.PartitionSpec) -> dict[str, Any]:
        """Statistics of a partition: 100 missing edges a client, and 10 more with each seed."""
        missing = 100 * spec.clients + 10 * spec.seed
        return {
            "dataset": spec.dataset,
            "clients": spec.clients,
            "seed": spec.seed,
            "mean_client_nodes": 2708 / spec.clients,
            "mean_client_edges": (5278 - missing) / spec.clients,
            "missing_edges": missing,
            "communities": 40,
            "modularity": 0.8,
            "cut_nodes": 3 * spec.seed,
        }


def sample_std(*values: float) -> float:
    """The standard deviation with n − 1 in the denominator, spelt out."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
