"""Settings and fixtures that all tests share."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait take no other test's time

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from feddep.datasets.fetching import download
from feddep.datasets.parsing import parse
from feddep.graph import partition
from feddep.graph.graph import Graph
from feddep.methods import plugins
from feddep.utils.errors import DataError
from workspace import forget_plugins

settings.register_profile(
    "ci",
    deadline=None,
    max_examples=25,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")
torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that run Snakemake first: they take longest, and other workers run the rest
    meanwhile.
    """
    items.sort(key=lambda item: item.get_closest_marker("dag") is None)


@pytest.fixture
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plugins of a test are not known to others."""
    monkeypatch.setattr(plugins, "_LOADED", {})
    yield
    forget_plugins()


@pytest.fixture
def communities_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who judges finds the communities of a graph and a seed that were exported again."""
    find, known = partition.find_communities, {}

    def found(graph: Graph, seed: int) -> np.ndarray:
        key = graph.indptr.tobytes(), graph.indices.tobytes(), seed
        if key not in known:
            known[key] = find(graph, seed)
        return known[key]

    monkeypatch.setattr(partition, "find_communities", found)


@pytest.fixture(scope="session")
def cora(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """The real Cora, from the mirror that FEDDEP_DATA_MIRROR names or the first other source that
    answers.
    """
    raw: Path = tmp_path_factory.mktemp("raw") / "cora"
    try:
        download("cora", raw, os.environ.get("FEDDEP_DATA_MIRROR"))
    except DataError as error:
        pytest.skip(f"no source of Cora is reachable: {error}")
    return parse("cora", raw)
