"""The command line, thin over :mod:`feddep.api` and :mod:`feddep.experiment`: see ``feddep
--help``.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from feddep import __version__
from feddep.utils.errors import ConfigError, DataError, FeddepError, out_of_memory, plain_output
from feddep.utils.files import atomic_path, check_replaceable
from feddep.utils.parameters import key_values


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: of the command line; by default those of the process.

    Returns:
        The exit status: 0; 1 where something went wrong that a user can act on, with one sentence
        on stderr; 2 for a wrong command line; 130 when interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parsed = _parser(next(iter(arguments), None)).parse_args(arguments)
    command: Callable[[argparse.Namespace], None] = parsed.function
    plain_output()
    for stream in (sys.stdout, sys.stderr):  # an encoding may lack characters of tables
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        command(parsed)
    except KeyboardInterrupt:
        print(f"feddep {parsed.command}: interrupted", file=sys.stderr)
        return 130
    except (FeddepError, OSError, ValidationError) as error:
        print(f"feddep {parsed.command}: {error}", file=sys.stderr)
        return 1
    except (MemoryError, RuntimeError) as error:
        if (sentence := out_of_memory(error)) is None:
            raise
        print(f"feddep {parsed.command}: {sentence}", file=sys.stderr)
        return 1
    return 0


def _parser(called: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="feddep", description="Federated learning on graphs: methods, benchmark, privacy."
    )
    parser.add_argument("--version", action="version", version=f"feddep {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help_line, example, add_arguments, function in _COMMANDS:
        command = commands.add_parser(
            name, help=help_line, description=f"{help_line}.", epilog=f"example: {example}"
        )
        if name == called:  # the arguments of others need not be loaded
            add_arguments(command)
        command.set_defaults(function=function)
    return parser


# --- run and compare ---


def _add_parameter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a parameter of methods that have it; repeatable",
    )


def _add_output(parser: argparse.ArgumentParser, folder: str) -> None:
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(folder),
        metavar="DIR",
        help=f"folder to write to (default: {folder})",
    )


def _add_training(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--graph",
        required=True,
        help="a public dataset (feddep datasets), or the path of a graph of your own",
    )
    parser.add_argument(
        "--clients",
        type=int,
        metavar="M",
        help="number of clients (default: that of the protocol, or as many as a given partition "
        "has)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=3,
        metavar="N",
        help="number of repetitions, seeds 0 to N - 1 (default: 3)",
    )
    parser.add_argument(
        "--partition",
        metavar="METHOD",
        help="how nodes are divided: louvain, random, dirichlet, shards, metis, overlap, or a "
        "plugin's; given: as the data say (default: given for a dataset of several graphs, else "
        "louvain)",
    )
    parser.add_argument(
        "--split",
        metavar="METHOD",
        help="where training, validation and test nodes are from: random, class_balanced, "
        "within_clients, or a plugin's; masks: those in the files of the graph (default: random)",
    )
    parser.add_argument(
        "--protocol",
        default="global",
        choices=["global", "field"],
        help="global: 5 clients, 60/20/20, one model tested on the global graph; field: what most "
        "papers share, 20/40/40 within 10 clients, "
        "each client's model tested on its own subgraph (default: global)",
    )
    parser.add_argument(
        "--features", default="raw", choices=["raw", "row", "minmax"], help="scaling (default: raw)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the training, such as rounds=20; repeatable",
    )
    _add_parameter(parser)
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file with methods, encoders or other parts of your own; repeatable",
    )
    parser.add_argument(
        "--device", default="auto", choices=["auto", "cpu", "cuda"], help="(default: auto)"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="of PyTorch; more help on large graphs alone (default: 1)",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "method", help="a method (feddep methods), or a Python file with one of your own"
    )
    _add_training(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help="CSV to write, a row a seed")


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "methods", nargs="+", help="methods, or files with some; the first is the baseline"
    )
    _add_training(parser)
    parser.add_argument(
        "--tuned",
        type=int,
        metavar="TRIALS",
        help="choose hyperparameters of each method among so many trials first; the same command "
        "goes on where it stopped",
    )
    parser.add_argument(
        "--defaults",
        action="store_true",
        help="the protocol's setting, as papers share it, for all methods; without it, a method "
        "has what a recorded search (results/) chose on other graphs",
    )
    _add_output(parser, "comparison")


def _run(given: argparse.Namespace) -> None:
    from feddep import comparison

    if given.output:
        check_replaceable(given.output, map(Path, (given.graph, given.method)))
    found = _trained(given, [given.method], given.output, defaults=True)
    if given.output:
        with atomic_path(given.output) as scratch:
            found.to_csv(scratch, index=False)
    print(comparison.table(found))


def _compare(given: argparse.Namespace) -> None:
    from feddep import comparison, tuning

    if given.output.exists() and not given.output.is_dir():
        raise DataError(f"{given.output} is no folder; a comparison is written to a folder")
    options = {"tuned": given.tuned, "defaults": given.defaults}
    runs = _trained(given, given.methods, given.output / "runs.csv", **options)
    if given.tuned is not None:
        print((given.output / "page.md").read_text(encoding="utf-8"))
    else:
        divided = given.partition or given.split
        note = tuning.recorded_reference(given.graph, given.protocol, given.clients)
        print(comparison.write_comparison(runs, given.output, "" if divided else note))
    print(f"table and figure are in {given.output}")


def _trained(
    given: argparse.Namespace, methods: Sequence[str], output: Path | None, **options: Any
) -> "pd.DataFrame":  # type: ignore[name-defined] # noqa: F821
    from feddep import api

    for file in given.plugin:
        api.load_plugin(file)
    return api.compare(
        methods,
        given.graph,
        clients=given.clients,
        seeds=given.seeds,
        partition=given.partition,
        split=given.split,
        protocol=given.protocol,
        features=given.features,
        setting=key_values(given.set),
        parameters=key_values(given.parameter),
        device=given.device,
        threads=given.threads,
        output=output,
        **options,
    )


# --- what there is ---


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    """A command without options."""


def _datasets(given: argparse.Namespace) -> None:
    from feddep.datasets.public_graphs import REGISTRY

    print(f"{'name':20}{'nodes':>9}{'edges':>9}{'features':>9}{'classes':>9}  family")
    for name, each in REGISTRY.items():
        sizes = f"{each.nodes:9}{each.edges:9}{each.features:9}{each.classes:9}"
        print(f"{name:20}{sizes}  {each.family}")


def _add_methods(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "method", nargs="?", help="a method, or a Python file with some, whose parameters are shown"
    )


def _methods(given: argparse.Namespace) -> None:
    from feddep import api
    from feddep.methods import registry

    if given.method is None:
        for name, method in registry.methods().items():
            print(f"{name:23} {method.title}")
        return
    for name in api.named([given.method]):
        method = registry.find(name)
        print(f"{name}: {method.title}")
        for key, field in method.parameters.model_fields.items():
            print(f"  {key} = {field.default!r}: {' '.join((field.description or '').split())}")


# --- rank ---


def _add_published(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that trains runs beside the published ones."""
    parser.add_argument(
        "--config",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="(default: config/default.yaml)",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("results/verify"),
        metavar="DIR",
        help="folder of public graphs",
    )


def _add_recorded(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command about a study of tuned methods."""
    parser.add_argument(
        "--study",
        default="field_pooled",
        help="a study of tuned methods (default: field_pooled, the leaderboard)",
    )
    _add_published(parser)


def _add_rank(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "method",
        help="a Python file with a method of your own, or a method that the study does not have",
    )
    parser.add_argument(
        "--graph",
        nargs="+",
        default=["cora"],
        metavar="NAME",
        help="datasets of the study, or all; the same command goes on where it stopped "
        "(default: cora)",
    )
    _add_parameter(parser)
    _add_output(parser, "ranked")
    _add_recorded(parser)


def _rank(given: argparse.Namespace) -> None:
    from feddep import judging_commands

    judging_commands.rank(given)


# --- export, judge, submit ---


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="folder to write")
    parser.add_argument(
        "--graph",
        required=True,
        help="a public dataset, the path of a graph of your own, or all: those of the study",
    )
    parser.add_argument(
        "--protocol", default="field", choices=["global", "field"], help="(default: field)"
    )
    parser.add_argument("--clients", type=int, metavar="M", help="(default: the protocol's)")
    parser.add_argument(
        "--seeds",
        help="such as 30..39; fresh:PHRASE: ten that no table has (default: the study's)",
    )
    _add_recorded(parser)


def _export(given: argparse.Namespace) -> None:
    from feddep import judging_commands

    judging_commands.export(given)


def _add_judge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "predictions", type=Path, help="a file GRAPH.npz of api.save_predictions, or a folder"
    )
    parser.add_argument("--name", required=True, help="of the method")
    parser.add_argument(
        "--uses",
        nargs="*",
        default=[],
        choices=["cross_client_edges", "whole_graph"],
        help="what it uses beyond FedAvg, which says beside whom it is tested",
    )
    parser.add_argument(
        "--seeds",
        help="fresh:PHRASE: of divisions that no table has; recorded methods are trained on them",
    )
    _add_output(parser, "judged")
    _add_recorded(parser)


def _judge(given: argparse.Namespace) -> None:
    from feddep import judging_commands

    judging_commands.judge_files(given)


def _add_submit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", type=Path, help="what judge wrote, with row.yaml filled in; or see --check"
    )
    parser.add_argument(
        "--check", action="store_true", help="check the rows of a folder of submissions instead"
    )
    parser.add_argument(
        "--base", type=Path, metavar="DIR", help="the submissions before: check what changed"
    )
    parser.add_argument(
        "--retrain",
        action="store_true",
        help="execute plugins and train a tenth of their runs, too",
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="CSV to write the grades to, for the site"
    )
    _add_published(parser)


def _submit(given: argparse.Namespace) -> None:
    from feddep import judging_commands

    judging_commands.submit(given)


# --- privacy, verify, workflow ---


def _add_privacy(parser: argparse.ArgumentParser) -> None:
    from feddep import privacy_command

    privacy_command.add_arguments(parser)


def _privacy(given: argparse.Namespace) -> None:
    from feddep import privacy_command

    privacy_command.main(given)


def _add_verify(parser: argparse.ArgumentParser) -> None:
    _add_published(parser)
    parser.add_argument(
        "--study", help="a study that the runs are of; by default they are of the main tables"
    )
    for part in ("setting", "dataset", "split", "partition", "method"):
        parser.add_argument(
            f"--{part}",
            help=f"the {part} of the runs, as the configuration names it, with or without what "
            "differs from its entry",
        )
    parser.add_argument("--clients", type=int, metavar="M", help="their number of clients")
    parser.add_argument(
        "--runs",
        type=int,
        default=1,
        metavar="N",
        help="how many are drawn of those that fit (default: 1)",
    )
    parser.add_argument("--seed", type=int, help="of the draw; by default another each time")
    parser.add_argument(
        "--max-seconds", type=float, metavar="S", help="draw among runs that took at most so long"
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.01,
        metavar="T",
        help="largest difference of an accuracy that is taken for rounding on another "
        "processor; 0: none (default: 0.01)",
    )


def _verify(given: argparse.Namespace) -> None:
    from feddep.config.loading import load
    from feddep.experiment import verification

    config = load(*given.config)
    asked = {
        part: getattr(given, part)
        for part in ("setting", "dataset", "split", "partition", "method", "clients")
        if getattr(given, part) is not None
    }
    chosen = verification.draw(
        config, given.study, asked, given.max_seconds, given.runs, given.seed
    )
    for line in verification.verify(config, chosen, given.work, given.tolerance):
        print(line, flush=True)


def _add_workflow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="folder to make; it must not be there yet")


def _workflow(given: argparse.Namespace) -> None:
    import shutil

    import feddep

    package = Path(feddep.__file__).resolve().parent
    roots = [
        root
        for root in (package / "project", package.parent)
        if (root / "workflow" / "Snakefile").is_file()
    ]
    if not roots or given.folder.exists():
        reason = (
            "is there already" if roots else f"cannot be made: no workflow lies beside {package}"
        )
        raise ConfigError(f"{given.folder} {reason}")
    left_out = shutil.ignore_patterns(*(package / "left_out.txt").read_text().split())
    for name in ("workflow", "config", "studies", "results"):
        shutil.copytree(roots[0] / name, given.folder / name, ignore=left_out)
    print(f"run the benchmark there: cd {given.folder} && snakemake")


_COMMANDS = (
    (
        "run",
        "train and test a method, and show its accuracies",
        "feddep run fedavg --graph cora --clients 5 --seeds 3",
        _add_run,
        _run,
    ),
    (
        "compare",
        "train several methods on the same splits and partitions; writes a paired table and a "
        "figure",
        "feddep compare fedavg fedsage_plus mine.py --graph mine.npz --clients 10 --partition "
        "louvain",
        _add_compare,
        _compare,
    ),
    (
        "rank",
        "search a method's hyperparameters as the leaderboard's were searched, and show its row "
        "among the recorded ones",
        "feddep rank mine.py --graph all",
        _add_rank,
        _rank,
    ),
    (
        "export",
        "write graphs, splits and partitions for other code",
        "feddep export --graph cora --protocol field --seeds 30..39 divisions",
        _add_export,
        _export,
    ),
    (
        "judge",
        "score predictions of other code, and show them among the recorded methods",
        "feddep judge predictions --name FedX",
        _add_judge,
        _judge,
    ),
    (
        "submit",
        "prepare a row of the leaderboard from what judge wrote, or check such rows",
        "feddep submit judged",
        _add_submit,
        _submit,
    ),
    (
        "datasets",
        "list the public datasets, with their sizes",
        "feddep datasets",
        _add_nothing,
        _datasets,
    ),
    (
        "methods",
        "list the methods, or the parameters of one",
        "feddep methods feddep",
        _add_methods,
        _methods,
    ),
    (
        "privacy",
        "what is guaranteed by neighbour sampling, by DP-SGD and by VESPER's noise",
        "feddep privacy dpsgd --help",
        _add_privacy,
        _privacy,
    ),
    (
        "verify",
        "train published runs anew, drawn at random or named, and say whether their numbers "
        "come back",
        "feddep verify --dataset cora --method fedavg",
        _add_verify,
        _verify,
    ),
    (
        "workflow",
        "copy the workflow and the recorded runs to a folder, for an installed package",
        "feddep workflow bench && cd bench && snakemake",
        _add_workflow,
        _workflow,
    ),
)
