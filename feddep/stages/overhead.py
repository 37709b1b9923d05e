"""Stage ``overhead``: Table 1 of FedDEP, measured on the generators of one run of each framework that trains any."""

import argparse
from pathlib import Path

HELP = "measure what training generators of missing neighbours across clients costs, beside the formulas of FedDEP's Table 1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--dataset", required=True, help="name of the dataset, or of a variant")
    parser.add_argument("--setting", required=True, help="name of the training setting, or of a variant")
    parser.add_argument("--clients", type=int, required=True, metavar="M", help="number of clients")
    parser.add_argument("--seed", type=int, required=True, help="seed of the runs")
    parser.add_argument("--framework", action="append", required=True, help="name of a framework, or of a variant; repeatable")
    parser.add_argument("--graph", type=Path, required=True, metavar="FILE", help="graph to read")
    parser.add_argument("--split", type=Path, required=True, metavar="FILE", help="split to read")
    parser.add_argument("--partition", type=Path, required=True, metavar="FILE", help="partition to read")
    parser.add_argument(
        "--made",
        action="append",
        default=[],
        metavar="FRAMEWORK:STAGE=FILE",
        help="result of a stage of one of the runs, such as feddep:prototypes=FILE; without it that stage's work is done here",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the tables are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write overhead.csv and overhead.md.

    Raises:
        ConfigError: if a framework has no entry in the table, or trains no generator with others.
    """
    import dataclasses

    from feddep import frameworks, overhead, variants
    from feddep.csv_files import write_csv
    from feddep.errors import ConfigError
    from feddep.plan import Run
    from feddep.reporting.overhead import frame, markdown
    from feddep.stages import _running
    from feddep.steps import make_all
    from feddep.storage import write_text

    schemes = {scheme.framework: scheme for scheme in overhead.SCHEMES}
    lines = []
    for name in arguments.framework:
        if variants.base(name) not in schemes:
            raise ConfigError(f"--framework is {name}; the table has entries for {', '.join(schemes)}")
        made = [file.removeprefix(f"{name}:") for file in arguments.made if file.startswith(f"{name}:")]
        job = _running.read(argparse.Namespace(**{**vars(arguments), "framework": name, "made": made}))
        module, parameters = frameworks.configured(job.specification["framework"])
        problem = dataclasses.replace(job.problem, made=make_all(job.problem, parameters, module.steps(parameters)))
        lines += overhead.measure(schemes[variants.base(name)], name, problem, parameters)

    run = Run(arguments.setting, arguments.dataset, arguments.clients, "", arguments.seed)
    write_csv(arguments.output / "overhead.csv", frame(run, lines), digits=10)
    write_text(arguments.output / "overhead.md", markdown(run, lines))
