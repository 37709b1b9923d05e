"""Stage ``federate``: train what ``cut`` wrote by processes on this machine, with Flower, and compare with the simulation."""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from feddep.deployment import DeploymentError
from feddep.deployment.client_folders import server_folder
from feddep.deployment.processes import started
from feddep.experiment.provenance import environment
from feddep.stages import flags
from feddep.utils.storage import read_arrays, read_result, write_result

HELP = "train the folders of feddep cut by a SuperLink and SuperNodes on this machine"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--directory", type=Path, required=True, metavar="DIRECTORY", help="what feddep cut wrote")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="results to write, JSON")
    parser.add_argument("--metrics", type=Path, metavar="FILE", help="results of the simulated run, to compare with")
    parser.add_argument("--model", type=Path, metavar="FILE", help="weights of the simulated run, to compare with")
    parser.add_argument("--insecure", action="store_true", help="without TLS and without authentication of SuperNodes")
    parser.add_argument(
        "--patience", type=flags.count, default=3600, metavar="SECONDS", help="how long to wait for all clients in a round (3600)"
    )
    parser.add_argument("--resend", type=flags.count, default=600, metavar="SECONDS", help="when to ask a client again (600)")


def main(arguments: argparse.Namespace) -> None:
    """Train, write the results, and say how they compare.

    Raises:
        DeploymentError: if the federation cannot be started, stops, or its numbers are not those of the simulation; with
            secure aggregation they differ by rounding, and by how much is printed.
    """
    simulated = None if arguments.metrics is None else read_result(arguments.metrics)
    model = None if arguments.model is None else read_arrays(arguments.model)
    begun = time.perf_counter()
    with started(arguments.directory, tls=not arguments.insecure) as local:
        outcome = local.run(arguments.patience, arguments.resend)
    provenance = {**environment("cpu", local.federation.threads), "seconds": round(time.perf_counter() - begun, 3)}
    provenance["seconds_by_round"] = outcome.pop("seconds")
    write_result(arguments.output, {"key": outcome.pop("key"), "result": outcome, "provenance": provenance})
    print(_page(outcome, len(outcome["curve"]["loss"])))
    weights = read_arrays(server_folder(arguments.directory) / "weights.safetensors", local.federation.key)
    if local.federation.secure_aggregation:
        print(_rounding(outcome, weights, simulated, model))
        return
    different = _differences(outcome, simulated, local.federation.key) + _different_weights(weights, model)
    if different:
        raise DeploymentError(f"the federation differs from the simulation in {', '.join(different)}")
    if simulated is not None or model is not None:
        print("Equal to the simulation, number for number.")


def _differences(outcome: dict[str, Any], simulated: dict[str, Any] | None, key: str) -> list[str]:
    """What is not as in the simulation: its key, the curves, the round that is best on validation, the communication."""
    if simulated is None:
        return []
    result = simulated["result"]
    pairs = {
        "key": (key, simulated["key"]),
        "loss": (outcome["curve"]["loss"], result["curve"]["loss"]),
        "validation accuracy": (outcome["curve"]["validation"], result["curve"]["validation"]),
        "best round": (outcome["best_round"], result["best_round"]),
        "communication": (outcome["communication"], result["communication"]),
    }
    return [name for name, (ours, theirs) in pairs.items() if ours != theirs]


def _different_weights(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray] | None) -> list[str]:
    if theirs is None or (set(ours) == set(theirs) and all(np.array_equal(ours[name], theirs[name]) for name in ours)):
        return []
    return ["weights"]


def _rounding(
    outcome: dict[str, Any], weights: dict[str, np.ndarray], simulated: dict[str, Any] | None, model: dict[str, np.ndarray] | None
) -> str:
    """How far what secure aggregation has rounded is from the simulation."""
    said = []
    if simulated is not None:
        pairs = zip(outcome["curve"]["validation"], simulated["result"]["curve"]["validation"], strict=True)
        said.append(f"validation accuracy by up to {max(abs(ours - theirs) for ours, theirs in pairs):.4f} in a round")
    if model is not None:
        said.append(f"a weight by up to {max(float(np.abs(weights[name] - model[name]).max()) for name in model):.2e}")
    return f"Differs from the simulation in {', '.join(said)}." if said else ""


def _page(outcome: dict[str, Any], rounds: int) -> str:
    """Bytes by client: what the communication counts, and what was on the wire."""
    lines = [f"{rounds} rounds; best validation accuracy {max(outcome['curve']['validation']):.4f}"]
    lines += [
        "",
        "| client | direction | bytes counted | bytes on the wire | ratio |",
        "|---|---|---:|---:|---:|",
    ]
    for row in outcome["wire"]:
        for direction in ("down", "up"):
            counted = [
                each for each in outcome["communication"] if (each["client"], each["direction"]) == (row["client"], direction)
            ]
            communication = sum(each["bytes"] for each in counted)
            lines.append(
                f"| {row['client']} | {direction} | {communication} | {row[direction]} | {row[direction] / communication:.3f} |"
            )
    return "\n".join(lines) + "\n"
