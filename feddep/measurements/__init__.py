"""What is measured beside accuracy, on demand.  A measurement is a module of this package with two functions:

* ``measure(run, task, parameters, results)``: from a run, its data, its method's parameters and the results of its steps by
  stage to tables of rows, by name; raises :class:`feddep.utils.errors.ConfigError` if there is nothing to measure;
* ``page(tables)``: from these tables, of all runs together, to the contents of files, by file name.

Tables of a run are kept as JSON, each row with the columns of its run: setting, dataset, clients, method, seed.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from feddep.config.loading import Config
from feddep.experiment import plan
from feddep.methods.method import StepResult, load, run_steps
from feddep.utils.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pandas as pd

    from feddep.methods.method import Method
    from feddep.training.task import Task

Tables = dict[str, list[dict[str, Any]]]
"""Rows of tables, by the name of the table."""
CLASSIFIER = "classify"
"""The need of a measurement that reads the weights of trained classifiers."""
COMPARED = ("fedsage_plus", "feddep_wo_proto", "feddep")
"""The methods of FedDEP's Table 1, in its order."""


@dataclass(frozen=True)
class Measurement:
    """A measurement.

    Attributes:
        name: its name in the command line, in file names, and where its runs can be chosen, in the configuration.
        title: what it measures.
        needs: stages whose results it reads; a method without them cannot be measured.
        files: what its page consists of, below the folder of results, without the list of their checksums.
        digits: significant digits of its numbers; all without it.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    files: tuple[str, ...]
    digits: int | None = 6

    def file(self, run: plan.Run) -> str:
        """Where the tables of a run lie below the folder of results."""
        return f"measurements/{self.name}/{run.path}.json"

    def runs(self, config: Config) -> list[plan.Run]:
        """The runs that it is made of: those that the configuration names, or for ``overhead`` one a method."""
        return _overhead_runs(config) if self.name == "overhead" else plan.measured_runs(config, self.name)

    def stages(self, method: "Method", parameters: Any) -> tuple[str, ...]:
        """The steps of a method whose results it reads, directly or not, in the order in which they are computed.

        Raises:
            ConfigError: if the method does not have what it needs.
        """
        steps = {step.stage: step for step in method.steps(parameters)}
        needed = set(self.needs) - {CLASSIFIER}
        if missing := needed - set(steps):
            raise ConfigError(
                f"the method {method.name} has no step {', '.join(sorted(missing))}, so there is nothing to measure"
            )
        for stage in reversed(steps):
            needed |= set(steps[stage].needs) if stage in needed else set()
        return tuple(stage for stage in steps if stage in needed)

    def measure(
        self, run: plan.Run, task: "Task", method: "Method", parameters: Any, weights: Mapping[str, Any] | None = None
    ) -> Tables:
        """The tables of a run, by name, ready for JSON: numbers rounded, and None for what is not known.

        Args:
            run: the run.
            task: its data and setting, with results of steps that are at hand; others are computed.
            method: its method.
            parameters: the method's parameters.
            weights: of the run's trained classifiers, by name.

        Raises:
            ConfigError: if there is nothing to measure.
        """
        stages = self.stages(method, parameters)
        results = run_steps(task, parameters, [step for step in method.steps(parameters) if step.stage in stages])
        if CLASSIFIER in self.needs:
            if weights is None:
                raise ConfigError(f"{self.name} needs the weights of the trained classifiers")
            results[CLASSIFIER] = StepResult(dict(weights))
        tables = load(f"{__name__}.{self.name}:measure")(run, task, parameters, results)
        of_run = {part: getattr(run, part) for part in ("setting", "dataset", "clients", "method", "seed")}
        return {name: [{**of_run, **_rounded(row, self.digits)} for row in rows] for name, rows in tables.items()}

    def page(self, measured: Iterable[Tables]) -> dict[str, Any]:
        """The page over the tables of several runs, by file name, for :func:`feddep.reporting.files.write`.

        Raises:
            DataError: if there is no run.
        """
        tables: Tables = {}
        for of_run in measured:
            for name, rows in of_run.items():
                tables.setdefault(name, []).extend(rows)
        if not tables:
            raise DataError(f"the configuration's key {self.name} names no run; there is nothing to show")
        contents: dict[str, Any] = load(f"{__name__}.{self.name}:page")({name: frame(rows) for name, rows in tables.items()})
        return contents


def frame(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    """Rows as a table; NaN for None, but NA for the number of clients."""
    import pandas as pd

    known = [{key: math.nan if value is None else value for key, value in row.items()} for row in rows]
    return pd.DataFrame(known).astype({"clients": "Int64"})


def _rounded(row: Mapping[str, Any], digits: int | None) -> dict[str, Any]:
    def rounded(value: Any) -> Any:
        if not isinstance(value, float):
            return value
        if not math.isfinite(value):
            return None
        return value if digits is None else float(f"{value:.{digits}g}")

    return {key: rounded(value) for key, value in row.items()}


def _overhead_runs(config: Config) -> list[plan.Run]:
    """On Cora with 5 clients, where there are such; of the first setting and the first seed."""
    dataset = "cora" if "cora" in config["datasets"] else next(iter(config["datasets"]))
    clients = 5 if 5 in config["clients"] else config["clients"][0]
    setting = next(iter(config["settings"]))
    return [plan.Run(setting, dataset, clients, method, config["seeds"][0]) for method in COMPARED]


MEASUREMENTS = {
    each.name: each
    for each in (
        Measurement(
            name="quality",
            title="what FedDEP's generators generate beside predictions that need no training",
            needs=("prototypes",),
            files=("tables/quality.csv", "tables/quality.md"),
        ),
        Measurement(
            name="label_shortcut",
            title="labels that prototypes tell of a client's nodes, and what classifiers make of generated neighbours",
            needs=("prototypes", "generator", CLASSIFIER),
            files=("tables/label_shortcut.csv", "tables/label_shortcut.md"),
        ),
        Measurement(
            name="neighbourhoods",
            title="neighbourhoods that NeighGen mends beside the true ones",
            needs=("generator",),
            files=(
                *("tables/neighbourhoods.csv", "tables/neighbourhoods.md", "tables/missing_neighbours.csv"),
                *("figures/missing_neighbours.svg", "figures/missing_neighbours.png"),
            ),
        ),
        Measurement(
            name="label_distributions",
            title="labels that clients hold and that trained models predict",
            needs=(CLASSIFIER,),
            files=(
                *("tables/label_distributions.csv", "tables/label_distributions.md"),
                *("figures/label_distributions.svg", "figures/label_distributions.png"),
            ),
        ),
        Measurement(
            name="degree_histograms",
            title="how many nodes have which degree, differentially private for edges",
            needs=(),
            files=(
                *("tables/degree_histograms.csv", "tables/degree_histograms.md"),
                *("figures/degree_histograms.svg", "figures/degree_histograms.png"),
            ),
        ),
        Measurement(
            name="vertical_attacks",
            title="what trained models tell of their nodes, and what party B is sent tells of edges, in vertical training",
            needs=(),
            files=(
                *("tables/vertical_attacks.csv", "tables/vertical_attacks.md"),
                *("figures/vertical_attacks.svg", "figures/vertical_attacks.png"),
            ),
        ),
        Measurement(
            name="overhead",
            title="what training generators of missing neighbours across clients costs, beside the formulas of FedDEP's Table 1",
            needs=("generator",),
            files=("tables/overhead.csv", "tables/overhead.md"),
            digits=None,
        ),
    )
}
