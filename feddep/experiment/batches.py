"""Runs that are trained one after the other in one process, which starts, and reads their graph,
once.
"""

from collections.abc import Mapping

from feddep.config.loading import Config
from feddep.experiment import keys, runs
from feddep.experiment.plan import Run

SECONDS = (15, 150)
"""How long a batch takes at least and at most, by recorded runs like its own, unless one run alone
takes longer: a few times what a process needs to start, and little enough that cores share the
work to its end."""
SHARE = 100
"""Into how many batches between these an experiment is divided."""
UNKNOWN = 5
"""Seconds of a run that no recorded one is like."""


def batches(config: Config, missing: Mapping[str, Run]) -> dict[str, list[str]]:
    """Divide runs into batches of one graph.

    Args:
        config: the configuration.
        missing: runs by key.

    Returns:
        The keys of the runs of each batch, in the order of the plan, by the batch's own key.
    """
    if not missing:  # then the tables of runs need not be read
        return {}
    typical, by_graph = runs.typical_seconds(config), dict[str, list[list[str]]]()
    seconds = {
        key: typical.get((run.dataset.name, run.method.name), UNKNOWN)
        for key, run in missing.items()
    }
    most = min(max(sum(seconds.values()) / SHARE, SECONDS[0]), SECONDS[1])
    spent = dict[str, float]()
    for key, run in missing.items():
        graph = run.dataset.name
        if graph not in spent or spent[graph] + seconds[key] > most:
            by_graph.setdefault(graph, []).append([])
            spent[graph] = 0
        by_graph[graph][-1].append(key)
        spent[graph] += seconds[key]
    return {
        keys.digest({"runs": batch}): batch for of_graph in by_graph.values() for batch in of_graph
    }
