"""Kind ``privacy``: accuracy over the guarantee of neighbour sampling, published and exact, such as
FedDEP's Figure 5.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.config.loading import STUDIES
from feddep.privacy.accountant import Guarantee, amplify, one_sampling
from feddep.privacy.profile import exact_at_node
from feddep.reporting import figures
from feddep.reporting import markdown as md
from feddep.reporting.frames import of_place, records
from feddep.reporting.labels import panel_title, places
from feddep.reporting.load import Study
from feddep.utils.errors import DataError

SHOWS = """\
Test accuracy, mean ± sample standard deviation over the seeds, at the round that is
best on validation nodes; beside what the sampling of d neighbours hides of an edge.

- ε and δ: FedDEP's, of one sampling out of D neighbours, as in its Figure 5, and for r < 1 with its
  Bernoulli sampler. D is the least degree that the paper supposes for so many clients of
  MSAcademic. In truth the least is 0 or 1 (docs/results/privacy.md).
- *exact δ*: of one sampling of a list of D neighbours, whatever the ε, and *after all* samplings, L
  hops times the epochs of the classifier's training; r does not lower it. A graph whose least
  degree is D may have lists with a larger δ: for d = 5 and D = 3 that refutes the published δ
  (docs/results/privacy.md).
- Every method that draws its mini-batches' neighbours has this guarantee, FedAvg no less than
    FedDEP.
- *noise sigma*: of a method that is trained by DP-SGD besides. The paper sets *paper sigma* beside
  its ε without saying how one follows from the other. What DP-SGD guarantees is in
  results/client_privacy/page.md. As methods they have no finite ε for edges: what they feed to the
  noised training, or share beside it, depends on edges without noise. Their clipping norm was
  chosen on private validation nodes.
"""
COLUMNS = [
    "fanout_d",
    "degree_D",
    "bernoulli_r",
    "samplings",
    "epsilon",
    "delta",
    "exact_delta",
    "exact_log10_rest",
]
COLUMNS += ["noise_sigma", "paper_sigma"]
"""Columns beside a point of the study."""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """The summary over seeds, with

    fanout_d, degree_D, bernoulli_r: d of the setting, the paper's D for so many clients, r of the
        method (1 without);
    samplings: k, of the classifier's training; epsilon and delta: the published pair of one
    sampling; exact_delta: of one sampling; exact_log10_rest: the logarithm of 1 − δ after all;
    noise_sigma: σ of the method, NaN without noise;
    paper_sigma: the σ that the paper has for so many clients.  NaN where the paper names no D.

    Raises:
        DataError: if it names one for none of the runs.
    """
    pairs = pd.read_csv(STUDIES / "privacy" / "published" / "edge_ldp.csv")
    paper = {row["clients"]: row for row in records(pairs)}
    beside = [
        _beside(given, paper.get(run.clients))
        for given, run in zip(study.specifications(), study.plan, strict=True)
    ]
    table = study.summary(pd.DataFrame(beside, columns=COLUMNS))
    if table["epsilon"].isna().all():
        known = ", ".join(map(str, paper))
        raise DataError(
            f"no run of the study {study.name} has a guarantee: FedDEP names a least degree for "
            f"{known} clients only"
        )
    return {"table": table}


def _beside(specification: Mapping[str, Any], paper: Mapping[str, Any] | None) -> dict[str, float]:
    """The guarantee of a run's neighbour sampling, by the names in :data:`COLUMNS`; ``paper`` is
    what Figure 5 has.
    """
    setting, method = specification["setting"], specification["method"]
    fanout = setting["fanout"]
    samplings = setting["layers"] * setting["rounds"] * setting["local_epochs"]
    rate, noise = method.get("bernoulli_rate", 1.0), method.get("sigma", math.nan)
    known = {"fanout_d": fanout, "bernoulli_r": rate, "samplings": samplings, "noise_sigma": noise}
    if paper is None:
        return known
    degree = paper["min_degree_D"]
    theirs, ours = amplify(one_sampling(degree, fanout), rate), exact_at_node(degree, fanout)
    known |= {
        "degree_D": degree,
        "epsilon": theirs.epsilon,
        "delta": theirs.delta,
        "exact_delta": ours.delta,
    }
    return known | {
        "exact_log10_rest": samplings * ours.log_rest / math.log(10),
        "paper_sigma": paper["dpsgd_sigma"],
    }


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A section a setting and dataset; a line a method, number of clients and value."""
    table = tables["table"].sort_values(["epsilon", "clients"], kind="stable")
    rest = [rest * math.log(10) for rest in table["exact_log10_rest"]]
    table["exact δ after all"] = [
        None if math.isnan(each) else Guarantee(0.0, each).format_delta() for each in rest
    ]
    columns = [
        "clients",
        "fanout_d",
        "degree_D",
        "bernoulli_r",
        "epsilon",
        "delta",
        "exact_delta",
        "exact δ after all",
    ]
    return md.shown(
        table, [*columns, "method", *_others(study), "noise_sigma", "paper_sigma", "mean"]
    )


def _others(study: Study) -> list[str]:
    """The options that show neither in the guarantee nor in σ."""
    return [
        column
        for column in study.options
        if column.rpartition(".")[2] not in {"fanout", "bernoulli_rate", "sigma"}
    ]


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a setting and dataset: accuracy at each guarantee, smallest published ε first; exact
    δ below it.

    What has no guarantee to show, such as a run on the whole graph, is left out.
    """
    table = (
        tables["table"]
        .dropna(subset="epsilon")
        .sort_values(["epsilon", "exact_delta", "clients"], kind="stable")
    )
    signs = {"M": "clients", "d": "fanout_d", "r": "bernoulli_r"}
    signs = {
        "ε": "epsilon",
        "δ": "exact_delta",
        **{sign: name for sign, name in signs.items() if table[name].nunique() > 1},
    }

    def name(row: Mapping[str, Any]) -> str:
        other = row["noise_sigma"] not in (None, row["paper_sigma"])
        return md.line_name(row, _others(study)) + (", another σ than the paper's" if other else "")

    curves = table.groupby(
        ["setting", "dataset", "method", "noise_sigma", *_others(study)], dropna=False
    )["mean"]
    return figures.lines(
        f"Privacy guarantees move accuracy by up to {curves.agg(np.ptp).max():.3f}\n{study.title}",
        {panel_title(table, *of): records(of_place(table, *of)) for of in places(table)},
        lambda row: "\n".join(f"{sign} = {row[column]:.3g}" for sign, column in signs.items()),
        name,
        labels=("published ε of one sampling, and its exact δ", "test accuracy"),
        joined=False,
    )
