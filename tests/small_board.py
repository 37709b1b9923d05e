"""A small leaderboard with recorded runs, on a graph in a file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import yaml

from feddep import api, cli, leaderboard
from feddep.config.loading import Config, load
from feddep.experiment import plan
from feddep.experiment.verification import Trainer
from feddep.judging import predictions

SEEDS, SEARCHED = [0, 1, 2], 9
METHODS: dict[str, dict] = {"fedavg": {}, "fedavg_oracle": {}, "local": {}}
Predict = Callable[[np.ndarray, int], np.ndarray]


class Board:
    """A folder with a configuration, recorded runs and exported divisions."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.divisions = folder, folder / "divisions" / "mini"
        self.graph = api.synthetic_graph(nodes=150, classes=3, communities=6, features=30)
        torch.save(api.to_pyg(self.graph), folder / "mini.pt")
        setting = {"rounds": 3, "hidden_channels": 8, "learning_rate": 0.05, "encoder": "gcn"}
        runs = [{"seeds": seeds, "methods": METHODS} for seeds in ([SEARCHED], SEEDS)]
        raw = {
            "output": str(folder / "out"),
            "records": {"directory": str(folder / "runs")},
            "device": "cpu",
            "datasets": {"mini": {"path": str(folder / "mini.pt")}},
            "clients": [3],
            "seeds": [0],
            "split": {"method": "within_clients", "train": 0.2, "val": 0.4},
            "settings": {"field": {**setting, "full_batch": True, "evaluation": "owners"}},
            "tables": [{"setting": "field", "methods": ["fedavg"]}],
            "studies": [
                {"name": "mine", "kind": "tuned", "search_seeds": [SEARCHED], "runs": runs}
            ],
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(raw))
        leaderboard.train(self.config, plan.study_runs(self.config, "mine"), folder)
        self.runs = plan.compared_runs(self.config, "mine")["mini"]
        self.export("0..2", self.divisions.parent)

    @property
    def config(self) -> Config:
        return load(self.folder / "config.yaml")

    @property
    def trainer(self) -> Trainer:
        return Trainer(self.config, self.folder)

    def command(self, *arguments: object) -> int:
        """Run a command beside the recorded runs."""
        given = [*map(str, arguments), "--config", str(self.folder / "config.yaml")]
        return cli.main([*given, "--work", str(self.folder)])

    def export(self, seeds: str, folder: Path) -> None:
        given = ["--graph", str(self.folder / "mini.pt"), "--seeds", seeds, "--clients", "3"]
        assert self.command("export", folder, *given, "--study", "mine") == 0

    def predict(self, target: Path, predict: Predict, divisions: Path | None = None) -> Path:
        """Write ``mini.npz`` with what a function of the labels and the seed says."""
        folder = divisions or self.divisions
        seeds = sorted(int(file.stem) for file in folder.glob("[0-9]*.npz"))
        said = {seed: predict(self.graph.labels, seed) for seed in seeds}
        predictions.save(target / "mini.npz", folder, said)
        return target / "mini.npz"


def right(share: float) -> Predict:
    """This share of the nodes gets its class."""

    def predict(labels: np.ndarray, seed: int) -> np.ndarray:
        wrong = np.random.default_rng(seed).random(len(labels)) >= share
        return (labels + wrong) % 3

    return predict
