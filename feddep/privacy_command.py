"""Command ``privacy``: what neighbour sampling, DP-SGD or VESPER's noise guarantees, or the noise
that keeps a budget.
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from feddep.privacy import accountant
from feddep.privacy.accountant import Guarantee, PrivacyError
from feddep.privacy.dpsgd_accounting import (
    SIGMAS,
    Epsilons,
    binomial_changes,
    most_roots,
    most_roots_of_node,
    one_and_all_steps,
    poisson_sampling,
)
from feddep.privacy.profile import exact_at_node
from feddep.privacy.vesper_accounting import ACCOUNTANTS, NOISES, noise_for
from feddep.privacy.vesper_sensitivity import (
    AGGREGATIONS,
    BOUNDINGS,
    NOISE_LAST,
    WEIGHTS,
    Correction,
    VerticalTraining,
)
from feddep.utils.files import atomic_path

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
ε of an edge in VESPER by each accountant, or the least noise for a budget, ∞ where none is enough
paper: Theorem 2.1 as printed, no bound; paper_fixed: the theorem that it cites; rdp: the sharper
bound that the paper ran; no_amplification: the receiver knows each batch; certified: the corrected
mechanism, the only guarantee (docs/results/vesper.md).
Example: feddep privacy vesper --noise 20 --delta 1e-5 --nodes 320 --batch-size 32 \\
  --steps 500 --layers 2 --degree 5"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the mechanisms and their flags."""
    mechanisms, plain = (
        parser.add_subparsers(metavar="MECHANISM", required=True),
        argparse.RawDescriptionHelpFormatter,
    )

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
    noise = vesper.add_mutually_exclusive_group(required=True)
    number(noise, "noise", "θ", "standard deviation of the noise on every entry of a row", float)
    number(noise, "epsilon", "ε", "a budget: find the least noise that keeps it", float)
    number(vesper, "delta", "δ", "δ, below 1/|E|", float, required=True)
    number(vesper, "edges", "|E|", "number of edges, to check δ by")
    number(vesper, "nodes", "N_T", "number of training nodes", required=True)
    number(vesper, "batch-size", "B", "number of roots in a batch", required=True, dest="batch")
    length = vesper.add_mutually_exclusive_group(required=True)
    number(length, "steps", "T", "number of steps, whose batches are drawn afresh")
    number(length, "epochs", "N", "number of shuffled epochs")
    number(vesper, "layers", "L", "number of message passing layers", required=True)
    number(vesper, "degree", "D", "largest degree", required=True)
    vesper.add_argument(
        "--aggregation",
        choices=AGGREGATIONS,
        default="gin",
        help="how neighbours are summed (default: gin)",
    )
    number(vesper, "least-degree", "D_min", "degree from which gcn hears neighbours")
    vesper.add_argument(
        "--bounding",
        choices=BOUNDINGS,
        default="both",
        help="certified: who keeps edges (default: both)",
    )
    vesper.add_argument(
        "--weights",
        choices=WEIGHTS,
        help="certified: how A's weights learn (default: detached; vfgnn: frozen)",
    )
    vesper.add_argument(
        "--one-shot",
        action="store_true",
        help="certified: each layer is released once for all steps",
    )
    number(
        vesper,
        "evaluations",
        "K",
        "certified: further releases of all nodes (default: 0)",
        default=0,
    )
    vesper.add_argument(
        "--nonnegative", action="store_true", help="certified: encodings have no negative entry"
    )
    number(
        vesper,
        "gradient-ratio",
        "r",
        "certified: noise of A's gradient over θ (default: 1)",
        float,
        default=1.0,
    )
    number(
        vesper,
        "degree-ratio",
        "r",
        "certified: noise of degrees over θ (default: 1)",
        float,
        default=1.0,
    )


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

    def spent(sigma: float, level: str) -> tuple[Epsilons, Epsilons]:
        return one_and_all_steps(sigma, rate, steps, delta, laws[level])

    if sigma is None:
        if arguments.level not in laws:
            raise PrivacyError(
                f"--level is {arguments.level}, which takes a bound on degrees; give --degree "
                "with --layers"
            )
        sigma = accountant.least_noise(
            lambda noise: spent(noise, arguments.level)[1].least, arguments.epsilon, *SIGMAS, 1.001
        )
    rows = []
    for level, law in laws.items():
        one, every = spent(sigma, level)
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
    given, budget, delta = vars(arguments), arguments.epsilon, arguments.delta
    accountant.require_delta(delta, arguments.edges)
    weights = arguments.weights or ("frozen" if arguments.aggregation in NOISE_LAST else "detached")
    options = (
        "bounding",
        "one_shot",
        "evaluations",
        "nonnegative",
        "gradient_ratio",
        "degree_ratio",
    )
    facts = {
        name: given[name]
        for name in ("nodes", "batch", "layers", "degree", "aggregation", "least_degree")
    }
    shuffled, batches = arguments.steps is None, -(-arguments.nodes // max(arguments.batch, 1))
    steps = arguments.epochs * batches if shuffled else arguments.steps
    correction = Correction(weights=weights, **{name: given[name] for name in options})
    training = VerticalTraining(**facts, steps=steps, shuffled=shuffled, correction=correction)
    accounts = {name: build(training) for name, build in ACCOUNTANTS.items()}
    if budget is None:
        return [
            {"accountant": name, "ε": account.epsilon(arguments.noise, delta)}
            for name, account in accounts.items()
        ]
    kept = {
        name: name == "certified" or account.epsilon(NOISES[1], delta) <= budget
        for name, account in accounts.items()
    }
    noises = {
        name: noise_for(account, budget, delta) if kept[name] else math.inf
        for name, account in accounts.items()
    }
    return [{"accountant": name, "θ": noise} for name, noise in noises.items()]
