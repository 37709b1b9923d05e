"""Kind ``curves``: accuracy and loss round by round, and run time, as in FedDEP's Figure 6."""

import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import figures, load
from feddep.reporting import markdown as md
from feddep.reporting.frames import beside_clients, client_numbers, of_place
from feddep.reporting.labels import place_title, places
from feddep.reporting.load import Study

SHOWS = """\
Test accuracy, mean ± sample standard deviation over the seeds, at the round that is
best on validation nodes and after the last round; and seconds, means over the seeds, of training
the classifier and of all that a method makes before it. In the figure lines are means over the
seeds, and bands reach from minimum to maximum. One process plays all clients in turn: its time is
the work of all of them together.
"""
MEASURED = {"test": "test accuracy", "loss": "training loss"}


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``: the summary over seeds, with total_seconds; ``rounds``: a row a method and round.

    The columns of ``rounds``, for test accuracy and training loss: mean, low and high, over seeds.
    """
    summary = study.summary()
    history = load.curves(study.config, study.plan, study.runs)
    rounds = load.over_seeds(history, list(MEASURED))
    return {
        "table": summary.assign(total_seconds=summary["seconds"] + summary["seconds_before"]),
        "rounds": rounds,
    }


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A line a method, setting, dataset and number of clients."""
    return md.shown(
        tables["table"],
        ["clients", "method", *study.options, "mean", "last_mean", "seconds", "seconds_before"],
    )


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A row of panels a setting, dataset and number of clients; a line a method."""
    history, drawn = tables["rounds"], []
    for setting, dataset in places(history):
        of = of_place(history, setting, dataset)
        for m in client_numbers(of):
            several = history.loc[history["dataset"] == dataset, "setting"].nunique() > 1
            title = place_title(dataset, m) + (f", {setting}" if several else "")
            # A method that sees the whole graph stands beside the others at each number of clients.
            shown = beside_clients(of, m)
            drawn += [
                ("" if k else title, shown, quantity, label)
                for k, (quantity, label) in enumerate(MEASURED.items())
            ]
    return figures.histories(f"{load.settled(history)}\n{study.title}", drawn)
