"""Table 1 of FedDEP, its formulas beside what was measured, as CSV and as Markdown."""

import dataclasses
from collections.abc import Sequence

import pandas as pd

from feddep import variants
from feddep.overhead import BYTES, SCHEMES, Line
from feddep.plan import Run
from feddep.reporting.labels import dataset_title, framework_title
from feddep.reporting.markdown import table

_COLUMNS = {
    "operations": "operations, of a node in an update",
    "bytes_epoch": "bytes, of a node in an epoch",
    "bytes_total": "bytes in all, of a {of}",
}
"""What Table 1 has; its headings are comp., comm./epoch and total comm."""

_NOTES = f"""\
- *paper*: Table 1's order of growth with the constant 1 and {BYTES} bytes a number. ñ is taken as the number of neighbours of a
  node that the nearest are looked up for; where that is not the number generated, the last table has both.
- *ours*: the leading term of what the implementation does, exact for bytes.
- *measured*, operations: every floating-point operation of the cross-client part of the loss, wherever it is carried out: the
  search for the nearest, the distances to what was found, and their gradient, in what was generated or, where other clients
  compute it, in the weights of the generator. A multiply-add counts as two, an operation on each element as one for each, a sum
  or a search for the least as one for each element that is read.
- *measured*, bytes: by the ledger, which counts a message where it leaves a client and where it reaches one, so twice on its way
  through the server. Divided by the nodes that neighbours are generated for, or by the clients.
- What pretraining sends, if the encoder is a common one, and what training the classifier sends is not counted.
"""
_CLIENTS = """\
Operations are those of a node in an update; *of all* is their share in all operations of training the generator and of mending
the subgraph with its result. A generator leaves its widest layers out where it generates nothing, so that share depends on how
much it generates.
"""


def frame(run: Run, lines: Sequence[Line]) -> pd.DataFrame:
    """One row a line, with the run that it was measured on; the client of a mean is ``all``."""
    of_run = {"dataset": run.dataset, "clients": run.clients, "setting": run.setting, "seed": run.seed}
    rows = [{**of_run, **dataclasses.asdict(line), "client": _name(line.client)} for line in lines]
    return pd.DataFrame(rows)


def markdown(run: Run, lines: Sequence[Line]) -> str:
    """The formulas beside the measured numbers, the measured numbers of each client, and where formulas do not hold."""
    title = f"{dataset_title(run.dataset)}, M = {run.clients}, setting {run.setting}, seed {run.seed}"
    frameworks = {variants.base(line.framework) for line in lines}
    present = [scheme for scheme in SCHEMES if scheme.framework in frameworks]
    remarks = "".join(f"- {framework_title(scheme.framework)}: {scheme.remark}\n" for scheme in present)
    return (
        f"# What training generators of missing neighbours across clients costs\n\n{title}\n\n{_NOTES}\n{_formulas(lines)}\n"
        f"## Where the formulas and the measured costs differ by more than a constant\n\n{remarks}\n## Each client\n\n"
        f"{_CLIENTS}\n{_clients(lines)}"
    )


def _formulas(lines: Sequence[Line]) -> str:
    header = ["", "", "paper", "= P", "ours", "= O", "measured", "measured / P", "measured / O"]
    rows, before = [], ""
    for line in lines:
        if line.client is not None or line.quantity not in _COLUMNS:
            continue
        title = _title(line.framework)
        rows.append(
            [
                "" if title == before else title,
                _COLUMNS[line.quantity].format(of=line.of),
                line.paper,
                _number(line.paper_value),
                line.ours,
                _number(line.ours_value),
                _number(line.measured),
                _ratio(line.measured, line.paper_value),
                _ratio(line.measured, line.ours_value),
            ]
        )
        before = title
    return table(header, [[_escaped(text) for text in row] for row in rows])


def _clients(lines: Sequence[Line]) -> str:
    header = ["", "client", "neighbours looked up for", "of them generated", "operations", "of all"]
    values = {(line.framework, line.client, line.quantity): line.measured for line in lines}
    rows, before = [], ""
    for framework, client, _ in (key for key in values if key[2] == "operations"):
        title = _title(framework)
        sought, generated, spent, everything = (
            values[framework, client, quantity] for quantity in ("sought", "generated", "operations", "all_operations")
        )
        share = f"{spent / everything:.1%}"
        cells = [_name(client), f"{sought:.2f}", f"{generated:.2f}", _number(spent), share]
        rows.append(["" if title == before else title, *cells])
        before = title
    return table(header, rows)


def _title(spelled: str) -> str:
    """The title of a framework, and how a variant differs."""
    name = variants.base(spelled)
    return framework_title(name) + spelled.removeprefix(name)


def _name(client: int | None) -> str:
    return "all" if client is None else str(client)


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _ratio(value: float, base: float) -> str:
    return f"{value / base:.3g}" if base else ""


def _escaped(text: str) -> str:
    """A bar is the border of a cell in Markdown."""
    return text.replace("|", r"\|")
