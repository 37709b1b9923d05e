"""Settings and fixtures that all tests share."""

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from feddep.datasets.fetching import download
from feddep.datasets.parsing import parse
from feddep.errors import DataError
from feddep.graph import Graph

settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def cora(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """The real Cora, from the first source that answers."""
    raw: Path = tmp_path_factory.mktemp("raw") / "cora"
    try:
        download("cora", raw)
    except DataError as error:
        pytest.skip(f"no source of Cora is reachable: {error}")
    return parse("cora", raw)
