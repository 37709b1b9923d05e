"""Kind ``privacy``: accuracy over the guarantee of neighbour sampling, published and exact, such as FedDEP's Figure 5."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from feddep.privacy.accountant import Guarantee, amplify, one_sampling
from feddep.privacy.formatting import format_delta
from feddep.privacy.profile import exact_at_node
from feddep.reporting import drawing, published
from feddep.reporting import markdown as md
from feddep.reporting.frames import of_place, records
from feddep.reporting.labels import method_title
from feddep.reporting.runs import FinishedRun, unspecified
from feddep.reporting.study_data import Study, line_name, panel_title, places, summarise_with
from feddep.reporting.undertrained import mark
from feddep.utils.errors import DataError

SHOWS = """\
Test accuracy, mean ± sample standard deviation over the seeds, at the round that is best on validation nodes; beside what the
sampling of d neighbours hides of an edge.

- *published*: FedDEP's ε and δ of one sampling out of D neighbours, as in its Figure 5, and for r < 1 with its Bernoulli sampler.
  D is the least degree that the paper supposes for so many clients of MSAcademic. In truth the least is 0 or 1 (docs/privacy.md).
- *exact δ*: of one sampling of a list of D neighbours, whatever the ε, and after *all* samplings, L hops times the epochs of the
  classifier's training; r does not lower it. A graph whose least degree is D may have lists with a larger δ: for d = 5 and D = 3
  that refutes the published δ (docs/privacy.md).
- Every method that draws its mini-batches' neighbours has this guarantee, FedAvg no less than FedDEP.
- σ: the noise of a method that is trained by DP-SGD besides. The paper sets these σ beside its ε without saying how one
  follows from the other; \\* marks another σ than the paper's for so many clients. What DP-SGD guarantees is in
  results/tables/privacy.md. As methods they have no finite ε for edges: what they feed to the noised training, or share beside
  it, depends on edges without noise. Their clipping norm was chosen on private validation nodes.
"""
COLUMNS = ["fanout_d", "degree_D", "bernoulli_r", "samplings", "epsilon", "delta", "exact_delta", "exact_log10_rest"]
COLUMNS += ["noise_sigma", "paper_sigma"]
"""Columns beside a point of the study."""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """The summary over seeds, with

    fanout_d, degree_D, bernoulli_r: d of the setting, the paper's D for so many clients, r of the method (1 without);
    samplings: k, of the classifier's training; epsilon and delta: the published pair of one sampling; exact_delta: of one
    sampling; exact_log10_rest: the logarithm of 1 − δ after all; noise_sigma: σ of the method, NaN without noise;
    paper_sigma: the σ that the paper has for so many clients.  NaN where the paper names no D.

    Raises:
        DataError: if it names one for none of the runs, or a result does not say what it was made with.
    """
    paper = {line["clients"]: line for line in records(published.edge_ldp())}
    table = summarise_with(study, pd.DataFrame([_beside(one, paper) for one in study.finished]))
    if table["epsilon"].isna().all():
        known = ", ".join(map(str, paper))
        raise DataError(
            f"no run of the study {study.name} has a guarantee to show: FedDEP names a least degree for {known} clients only"
        )
    return {"table": table}


def _beside(one: FinishedRun, paper: Mapping[int | None, Mapping[str, Any]]) -> dict[str, float]:
    """The guarantee of a run's neighbour sampling, by the names in :data:`COLUMNS`; ``paper`` has Figure 5 by clients."""
    try:
        setting, method = (one.result["specification"][part] for part in ("setting", "method"))
        fanout, samplings = setting["fanout"], setting["layers"] * setting["rounds"] * setting["local_epochs"]
    except KeyError as error:
        raise unspecified(one, error) from None
    rate, noise = method.get("bernoulli_rate", 1.0), method.get("sigma", math.nan)
    known = dict.fromkeys(COLUMNS, math.nan)
    known |= {"fanout_d": fanout, "bernoulli_r": rate, "samplings": samplings, "noise_sigma": noise}
    if one.run.clients not in paper:
        return known
    degree, sigma = (paper[one.run.clients][name] for name in ("min_degree_D", "dpsgd_sigma"))
    theirs = amplify(one_sampling(degree, fanout), rate)
    ours = exact_at_node(degree, fanout)
    return known | {
        "degree_D": degree,
        "epsilon": theirs.epsilon,
        "delta": theirs.delta,
        "exact_delta": ours.delta,
        "exact_log10_rest": samplings * ours.log_rest / math.log(10),
        "paper_sigma": sigma,
    }


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A block a setting and dataset; a line a method, number of clients and value."""
    table, others = tables["table"], _others(study)
    header = ["M", "d", "D", *(["r"] if (table["bernoulli_r"] != 1).any() else [])]
    header += ["published ε", "δ", "exact δ", "all", "method", *others, "σ", "accuracy"]

    def block(rows: pd.DataFrame) -> str:
        rows = rows.sort_values(["epsilon", "clients"], kind="stable")
        return md.table(header, [_line(line, others, "r" in header) for line in records(rows)])

    return md.sections(table, block)


def _line(line: Mapping[str, Any], others: list[str], with_rate: bool) -> list[str]:
    number = "" if line["clients"] is None else str(line["clients"])
    cells = [number, f"{line['fanout_d']:.0f}", "" if line["degree_D"] is None else f"{line['degree_D']:.0f}"]
    cells += [f"{line['bernoulli_r']:g}"] if with_rate else []
    if line["epsilon"] is None:
        cells += [""] * 4
    else:
        after = Guarantee(0.0, line["exact_log10_rest"] * math.log(10))
        cells += [f"{line[name]:.4g}" for name in ("epsilon", "delta", "exact_delta")] + [format_delta(after)]
    noise = "" if line["noise_sigma"] is None else f"{line['noise_sigma']:g}"
    star = " \\*" if noise and not _paired(line) else ""
    values = [md.value(line[option]) for option in others]
    return [
        *cells,
        method_title(line["method"]),
        *values,
        noise + star,
        md.plus_minus(line["mean"], line["std"]) + mark(line["undertrained"]),
    ]


def _paired(line: Mapping[str, Any]) -> bool:
    return bool(line["noise_sigma"] == line["paper_sigma"])


def _others(study: Study) -> list[str]:
    """The options that show neither in the guarantee nor in σ."""
    return [column for column in study.options if column.rpartition(".")[2] not in {"fanout", "bernoulli_rate", "sigma"}]


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a setting and dataset: accuracy at each guarantee, smallest published ε first; exact δ below it.

    Colours and shapes tell methods apart, a hollow mark another σ than the paper's.  What has no guarantee to show, such as a
    run on the whole graph, is left out.
    """
    table = tables["table"].dropna(subset="epsilon")
    others = _others(study)
    names = list(dict.fromkeys(line_name(line, others) for line in records(table)))
    panels = [(panel_title(table, *place), records(of_place(table, *place))) for place in places(table)]
    width = max(3.0, 0.8 * max(len(set(map(_place, lines))) for _, lines in panels) + 0.6)
    with drawing.style():
        drawn, axes = drawing.tiles(len(panels), 2, lambda rows, columns: (0.9 + columns * width, 1.4 + 2.6 * rows))
        for ax, (title, lines) in zip(axes.flat, panels, strict=False):
            shown = sorted(set(map(_place, lines)))
            numbers = [names.index(line_name(line, others)) for line in lines]
            for number, line in sorted(zip(numbers, lines, strict=True), key=lambda pair: pair[0]):
                look = _look(number, line["noise_sigma"] is None or _paired(line))
                x = shown.index(_place(line)) + 0.6 * ((number + 0.5) / len(names) - 0.5)
                ax.errorbar(x, line["mean"], yerr=line["std"] or 0.0, linestyle="none", markersize=4.5, elinewidth=0.9, **look)
            ax.set_title(title, loc="left")
            ax.set_xticks(range(len(shown)), _labels(shown), fontsize=7)
            ax.set_xlim(-0.5, len(shown) - 0.5)
            ax.set_xlabel(f"published ε of one sampling, and its exact δ{_everywhere(shown)}")
        for ax in axes[:, 0]:
            ax.set_ylabel("test accuracy")
        drawing.head(drawn, study.title, _legend(names, records(table)), columns=3)
    return drawn


Place = tuple[float, float, int, float, float]
"""Published ε, exact δ, M, d and r: a place on the axis."""


def _place(line: Mapping[str, Any]) -> Place:
    return line["epsilon"], line["exact_delta"], line["clients"], line["fanout_d"], line["bernoulli_r"]


def _choices(place: Place) -> dict[str, str]:
    _, _, clients, fanout, rate = place
    return {"M": f"{clients}", "d": f"{fanout:.0f}", "r": f"{rate:g}"}


def _everywhere(shown: list[Place]) -> str:
    """What of M, d and r is the same at all places."""
    same = [f"{name} = {value}" for name, value in _choices(shown[0]).items() if not _differs(shown, name)]
    return "".join(f"; {text}" for text in [", ".join(text for text in same if text != "r = 1")] if text)


def _differs(shown: list[Place], name: str) -> bool:
    return len({_choices(place)[name] for place in shown}) > 1


def _labels(shown: list[Place]) -> list[str]:
    """ε, δ, and what of M, d and r differs, a line each."""
    differ = [name for name in ("M", "d", "r") if _differs(shown, name)]
    return [
        "\n".join([f"ε = {place[0]:.3g}", f"δ = {place[1]:.3g}", *(f"{name} = {_choices(place)[name]}" for name in differ)])
        for place in shown
    ]


def _look(number: int, filled: bool) -> dict[str, Any]:
    colour, marker = (each[number % len(each)] for each in (drawing.COLOURS, drawing.MARKERS))
    return {"color": colour, "marker": marker, "markerfacecolor": colour if filled else "white"}


def _legend(names: list[str], lines: list[dict[str, Any]]) -> list[Line2D]:
    handles = [drawing.sample(name, linestyle="none", **_look(k, True)) for k, name in enumerate(names)]
    if any(line["noise_sigma"] is not None and not _paired(line) for line in lines):
        hollow = {"color": drawing.INK, "marker": "o", "markerfacecolor": "white", "linestyle": "none"}
        handles.append(drawing.sample("another σ than the paper's", **hollow))
    return handles
