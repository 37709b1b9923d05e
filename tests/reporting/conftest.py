"""What all tests of the reporting share."""

from pathlib import Path

import pytest
from fabricated import Results


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Global, Local and FedAvg on Cora among 5 and 10 clients, three seeds."""
    return Results(tmp_path).write()
