"""Kind ``searched``: every method with hyperparameters of its own, chosen by the study's ``search``
for each dataset on validation nodes.

The table compares the runs of what was chosen with those of ``options.reference``, by default the
first method.
"""

import pandas as pd
from matplotlib.figure import Figure

from feddep.experiment import plan
from feddep.reporting import markdown as md
from feddep.reporting.load import Study
from feddep.reporting.studies import tuned

SHOWS = tuned.SHOWS.replace("of a seed\nthat is", "of seeds\nthat are")


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``, as in :func:`feddep.reporting.studies.tuned.tables`."""
    trials = study.runs["seed"].isin(study.entry["search_seeds"])
    return {"table": tuned.compared(study, study.runs[~trials])}


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """Accuracies and differences by dataset, and what was chosen."""
    choices = plan.choices(study.config, study.name)
    chosen = tuned.markdown(study, {**tables, "choices": choices})
    how_sure = ["dataset", "method", "lead", "ties", "stalled", "diverged", "edge"]
    return f"{chosen}\n{md.shown(choices, how_sure, [])}"


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """That of tuned methods."""
    return tuned.figure(study, tables)
