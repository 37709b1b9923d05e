"""Command ``privacy``: what neighbour sampling, DP-SGD or VESPER's noise guarantees, or the noise
that keeps a budget.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from feddep.config import variants
from feddep.config.loading import load
from feddep.config.sentences import checked
from feddep.experiment import verification
from feddep.experiment.plan import Run
from feddep.methods import registry
from feddep.methods.vesper.noise_budget import (
    AGGREGATIONS,
    accounted_epsilon,
    aggregation_of,
    noise_scale,
)
from feddep.privacy import accountant
from feddep.privacy.accountant import Guarantee, PrivacyError
from feddep.privacy.dpsgd_accounting import (
    SIGMAS,
    binomial_changes,
    most_roots,
    most_roots_of_node,
    of_steps,
    one_and_all_steps,
    poisson_sampling,
)
from feddep.privacy.profile import exact_at_node
from feddep.privacy.vesper_accounting import ACCOUNTANTS
from feddep.training.config import TrainingConfig
from feddep.utils.errors import ConfigError
from feddep.utils.files import atomic_path
from feddep.utils.parameters import key_values

Rows = list[dict[str, Any]]

_SAMPLING = """\
ε and δ of neighbour sampling by FedDEP's Theorem 3.1, and the exact δ, the same for every ε
As printed: with the paper's misprints.
Example: feddep privacy sampling --degree 15 --fanout 5 --layers 2 --epochs 50 --slack 1e-5"""
_DPSGD = """\
ε of DP-SGD for examples, edges and nodes, by two accountants, or the least noise for a budget
Edges and nodes take a public bound on degrees.
Example: feddep privacy dpsgd --sigma 2 --nodes 3672 --batch-size 32 --epochs 50 \\
  --degree 10 --layers 2"""
_VESPER = """\
The noise of a run of VESPER or a baseline, and ε of an edge by each accountant
∞: no bound, or none for such a run. paper: Theorem 2.1 as printed; paper_fixed: the theorem that
it cites; rdp: the sharper bound that the paper ran; no_amplification: the receiver knows each
batch; certified: the corrected mechanism, the only guarantee (docs/results/vesper.md).
Examples: feddep privacy vesper gap --nodes 1624 --edges 5278 --set rounds=20 --set layers=1 \\
            --parameter epsilon=8 --parameter delta=1e-6
          feddep privacy vesper gap --study vesper_once --dataset cora"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the mechanisms and their flags."""
    mechanisms = parser.add_subparsers(metavar="MECHANISM", required=True)
    plain = argparse.RawDescriptionHelpFormatter

    def mechanism(
        name: str, table: Callable[[argparse.Namespace], Rows], text: str
    ) -> argparse.ArgumentParser:
        made = mechanisms.add_parser(
            name, help=text.partition("\n")[0], description=text, formatter_class=plain
        )
        made.set_defaults(table=table)
        made.add_argument("--csv", type=Path, metavar="FILE", help="write the table as CSV, too")
        return made

    def number(
        group: Any, flag: str, symbol: str, text: str, kind: type = int, **options: Any
    ) -> None:
        group.add_argument(f"--{flag}", type=kind, metavar=symbol, help=text, **options)

    sampling = mechanism("sampling", _sampling, _SAMPLING)
    number(sampling, "degree", "D", "least number of neighbours of a node", required=True)
    number(sampling, "fanout", "d", "number of neighbours drawn at a time", required=True)
    number(sampling, "layers", "L", "number of hops (default: 1)", default=1)
    number(sampling, "epochs", "N", "number of epochs (default: 1)", default=1)
    number(sampling, "rate", "r", "mean of the Bernoulli sampler (default: 1)", float, default=1.0)
    number(sampling, "slack", "δ'", "slack δ' of the composition (default: 0)", float, default=0.0)

    dpsgd = mechanism("dpsgd", _dpsgd, _DPSGD)
    noise = dpsgd.add_mutually_exclusive_group(required=True)
    number(noise, "sigma", "σ", "noise multiplier: standard deviation over clipping norm", float)
    number(noise, "epsilon", "ε", "a budget: find the least noise that keeps it", float)
    dpsgd.add_argument(
        "--level",
        choices=("example", "edge", "node"),
        default="example",
        help="what the budget is for",
    )
    number(dpsgd, "delta", "δ", "default: 1e-5", float, default=1e-5)
    number(dpsgd, "nodes", "n", "number of training nodes", required=True)
    number(dpsgd, "batch-size", "B", "expected number of training nodes in a batch", required=True)
    number(dpsgd, "epochs", "N", "number of epochs in all rounds together", required=True)
    number(dpsgd, "degree", "D", "public bound on degrees; with --layers")
    number(dpsgd, "layers", "L", "number of hops of the trees")

    vesper = mechanism("vesper", _vesper, _VESPER)
    vesper.add_argument("method", choices=AGGREGATIONS, help="a method with noise on its rows")
    vesper.add_argument("--study", help="the public facts are those of its runs in this study")
    vesper.add_argument("--dataset", help="of the study's runs those on this dataset")
    default = Path("config", "default.yaml")
    number(
        vesper, "config", "FILE", f"that has the study (default: {default})", Path, default=default
    )
    number(vesper, "work", "DIR", "folder of public graphs", Path, default=Path("results/verify"))
    number(vesper, "nodes", "N_T", "number of training nodes; with --edges, in place of a study")
    number(vesper, "edges", "|E|", "number of edges, to check δ by")
    for flag, text in (
        ("set", "an option of the training, such as rounds=20"),
        ("parameter", "a parameter of the method, such as epsilon=8"),
    ):
        vesper.add_argument(
            f"--{flag}", action="append", default=[], metavar="KEY=VALUE", help=text
        )
    number(vesper, "delta", "δ", "where no parameter says it (default: 1e-6)", float, default=1e-6)


def main(arguments: argparse.Namespace) -> None:
    """Print the table, and write it if asked to."""
    rows = arguments.table(arguments)
    named = [name for name in rows[0] if any(row[name] not in (None, "") for row in rows)]
    print(
        pd.DataFrame(
            [[_shown(row[name]) for name in named] for row in rows], columns=named
        ).to_string(index=False)
    )
    if arguments.csv is not None:
        numbers = pd.DataFrame(rows).map(
            lambda cell: cell.delta if isinstance(cell, Guarantee) else cell
        )
        with atomic_path(arguments.csv) as scratch:
            numbers.to_csv(scratch, index=False)


def _shown(cell: Any) -> str:
    """A δ by its distance from 1 where it is near, another number with four digits, nothing for
    None.
    """
    if isinstance(cell, Guarantee):
        return cell.format_delta()
    if isinstance(cell, float):
        return "∞" if math.isinf(cell) else f"{cell:.4g}"
    return "" if cell is None else str(cell)


def _sampling(arguments: argparse.Namespace) -> Rows:
    degree, fanout, rate = arguments.degree, arguments.fanout, arguments.rate
    parameters = accountant.SamplingParameters(
        fanout, arguments.layers, arguments.epochs, rate, arguments.slack
    )
    found = accountant.published_guarantee(degree, parameters)
    printed = accountant.amplified_epsilon_as_printed(found.composed.epsilon, rate)
    one, every = (exact_at_node(degree, fanout, times) for times in (1, parameters.samplings))
    names = ("samplings", "ε", "ε as printed", "δ", "δ as printed", "exact δ")
    rows = [
        ("one", found.one.epsilon, None, found.one, None, one),
        (
            f"all {parameters.samplings}",
            found.composed.epsilon,
            None,
            found.composed,
            found.composed_as_printed,
            every,
        ),
        (
            f"all, r = {rate:g}",
            found.final.epsilon,
            printed,
            found.final,
            found.final_as_printed,
            None,
        ),
    ]
    return [dict(zip(names, row, strict=True)) for row in rows]


def _dpsgd(arguments: argparse.Namespace) -> Rows:
    nodes, sigma, delta, degree, layers = (
        getattr(arguments, name) for name in ("nodes", "sigma", "delta", "degree", "layers")
    )
    rate, steps = poisson_sampling(nodes, arguments.batch_size, arguments.epochs)
    laws: dict[str, Any] = {"example": None}
    if degree is not None:
        if layers is None:
            raise PrivacyError(
                "--degree is given without --layers, the number of hops; it takes both to bound k"
            )
        of_node, of_both = (
            most_roots_of_node(degree, layers, replaced) for replaced in (False, True)
        )
        for level, most in (
            ("edge", most_roots(degree, layers)),
            ("node", of_node),
            ("replaced node", of_both),
        ):
            laws[level] = binomial_changes(min(most, nodes), rate)

    if sigma is None:
        if arguments.level not in laws:
            raise PrivacyError(
                f"--level is {arguments.level}, which takes a bound on degrees; give --degree "
                "with --layers"
            )
        sigma = accountant.least_noise(
            lambda noise: of_steps(noise, rate, steps, delta, laws[arguments.level]).least,
            arguments.epsilon,
            *SIGMAS,
            1.001,
        )
    rows = []
    for level, law in laws.items():
        one, every = one_and_all_steps(sigma, rate, steps, delta, law)
        facts = {
            "hidden": level,
            "k": None if law is None else len(law) - 1,
            "q": rate,
            "T": steps,
            "σ": sigma,
        }
        rows.append(
            {
                **facts,
                "one: RDP": one.rdp,
                "one: PLD": one.pld,
                "all: RDP": every.rdp,
                "all: PLD": every.pld,
            }
        )
    return rows


def _vesper(arguments: argparse.Namespace) -> Rows:
    if arguments.study is None:
        if arguments.nodes is None or arguments.edges is None:
            raise ConfigError("neither --study is given nor both --nodes and --edges; give either")
        parameters = key_values(arguments.parameter)
        setting = checked(TrainingConfig, key_values(arguments.set), ("set",))
        chosen = checked(registry.find(arguments.method).parameters, parameters, ("parameter",))
        facts = {"method": variants.format_name(arguments.method, parameters)}
        return [facts | _vesper_row(arguments, arguments.nodes, arguments.edges, setting, chosen)]
    config = load(arguments.config)
    trainer, rows = verification.Trainer(config, arguments.work), []
    asked = {"dataset": arguments.dataset} if arguments.dataset else {}
    runs: dict[tuple[str, str, str], Run] = {}  # one of all seeds
    for run in verification.planned(config, arguments.study, asked):
        runs.setdefault((run.setting.label, run.place.label, run.method.label), run)
    for names, run in runs.items():
        if run.method.name == arguments.method:
            _, chosen, _ = run.method.configured
            graph, split, _ = trainer.inputs(run)
            facts = dict(zip(("setting", "dataset", "method"), names, strict=True))
            setting = TrainingConfig(**run.setting.options)
            nodes, edges = len(split.train), graph.num_edges
            rows.append(facts | _vesper_row(arguments, nodes, edges, setting, chosen))
    if not rows:
        asked["method"] = arguments.method
        raise ConfigError(f"no run of studies.{arguments.study} has {asked}")
    return rows


def _vesper_row(
    arguments: argparse.Namespace,
    nodes: int,
    edges: int,
    setting: TrainingConfig,
    parameters: Any,
) -> dict[str, Any]:
    """The noise of a run, and its ε by each accountant; the paper's are of a release in every
    step.
    """
    aggregation = aggregation_of(arguments.method, parameters)
    theta = noise_scale(nodes, edges, setting, parameters, aggregation)
    delta = parameters.delta or arguments.delta
    counting = ["certified"] if parameters.release == "one_shot" else list(ACCOUNTANTS)
    epsilons = {
        name: accounted_epsilon(nodes, setting, parameters, aggregation, name, theta, delta)
        for name in counting
    }
    return {"N_T": nodes, "|E|": edges, "δ": delta, "θ": theta} | {
        f"ε: {name}": math.inf if epsilon is None else epsilon for name, epsilon in epsilons.items()
    }
