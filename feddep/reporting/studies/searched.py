"""Kind ``searched``: every method with hyperparameters of its own, chosen by the study's ``search``
for each dataset on validation nodes.

The table compares the runs of what was chosen with those of ``options.reference``, by default the
first method.
"""

import pandas as pd
from matplotlib.figure import Figure

from feddep.experiment import plan
from feddep.reporting import markdown as md
from feddep.reporting import statistics
from feddep.reporting.load import Study
from feddep.reporting.studies import tuned

SHOWS = f"""\
Each method has the hyperparameters that did best on the validation nodes of seeds
that are in no table, among equally many trials for each method on a dataset; two tables below name
them, and how far they lead. Test accuracy at the round that is best on validation nodes, mean ±
sample standard deviation over seeds that the search has not seen; a method on the whole graph
stands beside every M.
{statistics.HOW_JUDGED}In the figure, numbers stand for what is far below.
"""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``, as in :func:`feddep.reporting.studies.tuned.tables`."""
    trials = study.runs["seed"].isin(study.entry["search_seeds"])
    return {"table": tuned.compared(study, study.runs[~trials])}


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """Accuracies and differences by dataset, what was chosen, and how far it leads."""
    choices = plan.choices(study.config, study.name)
    chosen = tuned.markdown(study, {**tables, "choices": choices})
    columns = ["method", "dataset", "lead", "ties", "stalled", "diverged", "edge"]
    return (
        f"{chosen}\n`lead`: how much better the mean validation is than that of the second best "
        "trial; `edge`: chosen values in the first or last 5 % of their range.\n\n"
        f"{md.shown(choices.replace('', None), columns, [])}"
    )


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """That of tuned methods."""
    return tuned.figure(study, tables)
