"""Stage ``vesper_privacy``: what VESPER's noise guarantees for an edge by each accountant, or how much noise a budget needs."""

import argparse
import math
from dataclasses import asdict
from pathlib import Path

from feddep.privacy.accountant import PrivacyError
from feddep.privacy.formatting import aligned_table, format_number, sentences
from feddep.privacy.vesper_accounting import ACCOUNTANTS, noise_for, require_delta, touch_probability
from feddep.privacy.vesper_sensitivity import (
    AGGREGATIONS,
    BOUNDINGS,
    WEIGHTS,
    Correction,
    VerticalTraining,
    layer_squares,
    published_roots,
    published_sensitivities,
)
from feddep.stages.privacy_flags import refuse, write

HELP = "work out what VESPER's noise guarantees for an edge by each of its accountants, or the noise that keeps a budget"

NOTES = (
    "printed, intended, library and holds account for the mechanism as published, corrected for that of docs/vesper.md.",
    "B knows each batch, and A's weights must not learn through edges without noise: only corrected is a guarantee.",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    noise = parser.add_mutually_exclusive_group(required=True)
    noise.add_argument("--noise", type=float, metavar="θ", help="standard deviation of the noise on every entry of a row")
    noise.add_argument("--epsilon", type=float, metavar="ε", help="a budget: find the least noise that keeps it")
    parser.add_argument("--delta", type=float, required=True, metavar="δ", help="δ, below 1/|E|")
    parser.add_argument("--edges", type=int, metavar="|E|", help="number of edges, to check δ by")
    parser.add_argument("--nodes", type=int, required=True, metavar="N_T", help="number of training nodes")
    parser.add_argument("--batch", type=int, required=True, metavar="B", help="number of roots in a batch")
    parser.add_argument("--steps", type=int, metavar="T", help="number of steps, whose batches are drawn afresh")
    parser.add_argument("--epochs", type=int, metavar="N", help="number of shuffled epochs, instead of --steps")
    parser.add_argument("--layers", type=int, required=True, metavar="L", help="number of message passing layers")
    parser.add_argument("--degree", type=int, required=True, metavar="D", help="largest degree")
    parser.add_argument("--aggregation", choices=AGGREGATIONS, default="gin", help="how neighbours are summed (default: gin)")
    parser.add_argument("--least-degree", type=int, metavar="D_min", help="degree from which gcn hears neighbours")
    parser.add_argument("--norm", type=float, default=1.0, metavar="‖W‖", help="spectral norm of the weights (default: 1)")
    corrected = parser.add_argument_group("the corrected mechanism")
    corrected.add_argument("--bounding", choices=list(BOUNDINGS), default="both", help="who keeps edges (default: both)")
    corrected.add_argument("--weights", choices=WEIGHTS, help="how A's weights learn (default: stopped; for vfgnn, frozen)")
    corrected.add_argument("--once", action="store_true", help="each layer is released once for all steps")
    corrected.add_argument("--evaluations", type=int, default=0, metavar="K", help="further releases of all nodes (default: 0)")
    corrected.add_argument("--nonnegative", action="store_true", help="encodings have no negative entry")
    corrected.add_argument(
        "--gradient-ratio", type=float, default=1.0, metavar="r", help="noise of A's gradient over θ (default: 1)"
    )
    corrected.add_argument("--degree-ratio", type=float, default=1.0, metavar="r", help="noise of degrees over θ (default: 1)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write all numbers, JSON")


def main(arguments: argparse.Namespace) -> None:
    """Print the accountants side by side, and write their numbers if asked to."""
    refuse(
        (
            (arguments.steps is None and arguments.epochs is None, "the number of steps is missing; give --steps or --epochs"),
            (arguments.steps is not None and arguments.epochs is not None, "--steps is given beside --epochs; give one of them"),
            (arguments.edges is not None and arguments.edges < 1, f"--edges is {arguments.edges}; it must be at least 1"),
            (arguments.nodes < 1, f"--nodes is {arguments.nodes}; it must be at least 1"),
            (arguments.batch < 1, f"--batch is {arguments.batch}; it must be at least 1"),
        )
    )
    require_delta(arguments.delta, arguments.edges)
    training = _training(arguments)
    values, remarks = {}, []
    for name, account in ACCOUNTANTS.items():
        accountant = account.build(training)
        if arguments.epsilon is None:
            values[name] = accountant.epsilon(arguments.noise, arguments.delta)
            continue
        try:
            values[name] = noise_for(accountant, arguments.epsilon, arguments.delta, arguments.edges)
        except PrivacyError as error:
            if name == "corrected" or not 0 < arguments.epsilon < math.inf:
                raise
            values[name] = math.inf
            remarks.append(f"{name}: {error}")
    found = "ε" if arguments.epsilon is None else "θ"
    rows = [[name, format_number(values[name]), account.title] for name, account in ACCOUNTANTS.items()]
    table = aligned_table(_title(arguments, training), ["accountant", found, ""], rows, {0, 2})
    result = {
        "delta": arguments.delta,
        "training": asdict(training),
        "epsilon" if arguments.epsilon is None else "noise": {
            name: value if math.isfinite(value) else None for name, value in values.items()
        },
    }
    write(arguments, ["\n".join([table, *NOTES]), sentences(remarks)], result)


def _training(arguments: argparse.Namespace) -> VerticalTraining:
    batches = -(-arguments.nodes // arguments.batch)
    correction = Correction(
        bounding=arguments.bounding,
        weights=arguments.weights or ("frozen" if arguments.aggregation == "vfgnn" else "stopped"),
        once=arguments.once,
        evaluations=arguments.evaluations,
        nonnegative=arguments.nonnegative,
        gradient_ratio=arguments.gradient_ratio,
        degree_ratio=arguments.degree_ratio,
    )
    return VerticalTraining(
        nodes=arguments.nodes,
        batch=arguments.batch,
        steps=arguments.steps if arguments.epochs is None else arguments.epochs * batches,
        layers=arguments.layers,
        degree=arguments.degree,
        shuffled=arguments.epochs is not None,
        aggregation=arguments.aggregation,
        norm=arguments.norm,
        least_degree=arguments.least_degree,
        correction=correction,
    )


def _title(arguments: argparse.Namespace, training: VerticalTraining) -> str:
    given = f"θ = {arguments.noise:g}" if arguments.epsilon is None else f"ε = {arguments.epsilon:g}"
    batches = f"{training.epochs} shuffled epochs" if training.shuffled else "batches drawn afresh"
    roots = published_roots(training.degree, training.layers)
    gamma = touch_probability(training.nodes, roots, training.batch)
    published = sum(each**2 for each in published_sensitivities(training))
    corrected = "" if training.aggregation == "vfgnn" else f", corrected {format_number(sum(layer_squares(training)))}"
    return (
        f"An edge in {training.aggregation} with L = {training.layers}, D = {training.degree}, {given}, δ = {arguments.delta:g}, "
        f"T = {training.steps}, {batches}\n"
        f"N_e = {roots}, γ = {gamma:.4g}, Σ S² = {format_number(published)}{corrected}"
    )
