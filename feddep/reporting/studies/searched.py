"""Kind ``searched``: every method with hyperparameters of its own, chosen by the study's ``search``
for each dataset on validation nodes.

The table compares the runs of what was chosen with those of ``options.reference``, by default the
first method.
"""

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.experiment import plan
from feddep.reporting import frames, statistics
from feddep.reporting import markdown as md
from feddep.reporting.labels import method_title
from feddep.reporting.load import Study
from feddep.reporting.studies import tuned

SHOWS = f"""\
Each method has the hyperparameters that did best on validation nodes, among equally many trials for
each method on a graph. *Tuned here*: the best mean on the seeds of the search, which are in no
table, of the four trials that were best on the first of them. *Tuned again*: the same of other
trials of the reference, whose difference is the noise of tuning. *Out of the box*: of a method's
trials, the same on all graphs, that with the best mean on the first seed over all other graphs; it
needs no search on this graph, and is compared with the reference out of the box. What was mostly
unfinished when it was chosen, its best round among the last 5 %, has three times as many rounds
here, at most {plan.MOST_ROUNDS}, whatever the method. Two tables below name what was chosen, and
how far it leads. Test accuracy at the round that is best on validation nodes, mean ± sample
standard deviation over seeds that the search has not seen; a method on the whole graph stands
beside every M.
{tuned.OF_CLIENTS}{statistics.HOW_JUDGED}In the figure, numbers stand for what is far below.
"""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``, as in :func:`feddep.reporting.studies.tuned.tables`, with a row for each
    configuration of a method (:data:`feddep.experiment.plan.CONFIGURATIONS`).
    """
    final = {
        configuration: study.runs[study.runs["key"].isin({run.key for run in of})]
        for configuration, of in plan.final_runs(study.config, study.name).items()
    }
    found = []
    for configuration, of in final.items():
        baseline, names = None, of["method"].map(variants.base)
        if configuration == plan.AGAIN:
            here = final[plan.HERE]
            baseline = here[here["method"].map(variants.base).isin(names)]
        found.append(tuned.compared(study, of, baseline).assign(configuration=configuration))
    return {"table": frames.in_paper_order(pd.concat(found), ["dataset", "clients"])}


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """The noise of tuning, accuracies and differences by dataset, what was chosen, and how far it
    leads.
    """
    table = tables["table"]
    choices = plan.choices(study.config, study.name).replace({"dataset": {"": "any other"}})
    again = table.loc[table["configuration"] == plan.AGAIN, "mean_difference"].abs()
    notes = [
        f"Noise of tuning: {method_title(table['reference'].iloc[0])}, tuned again, differs by "
        f"{again.mean():.4f} in the mean over graphs, at most by {again.max():.4f}."
    ]
    if plan.ELSEWHERE not in set(table["configuration"]):
        notes.append("With one graph alone there is no configuration out of the box.")
    chosen = tuned.markdown(study, {"table": table, "choices": choices})
    columns = ["method", "dataset", "configuration", "lead", "ties", "stalled", "diverged", "edge"]
    return (
        f"{' '.join(notes)}\n\n{chosen}\n`lead`: how much better the mean validation is than that "
        "of the second best trial; `edge`: chosen values in the first or last 5 % of their "
        f"range.\n\n{md.shown(choices.replace('', None), columns, [])}"
    )


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """That of tuned methods, as they were tuned here."""
    table = tables["table"]
    return tuned.figure(study, {"table": table[table["configuration"] == plan.HERE]})
