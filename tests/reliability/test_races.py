"""A workflow that runs is not changed by another that is planned in the same folder with another configuration."""

import shutil
from pathlib import Path

import pytest
from trials import number_of

from workspace import FEDAVG, GLOBAL, Workspace

pytestmark = [pytest.mark.dag, pytest.mark.slow, pytest.mark.timeout(3600)]


def test_dry_runs_beside_a_running_workflow_change_nothing(tmp_path: Path) -> None:
    workspace = Workspace.new(tmp_path)
    workspace.run("tables")
    expected = {run: workspace.result(run)["result"] for run in (FEDAVG, GLOBAL)}
    for _ in range(number_of("races")):
        shutil.rmtree(workspace.output)
        with workspace.started("tables", "--cores", "1") as process:
            while process.poll() is None:
                planned = workspace.run("tables", "--dry-run", "--config", "split={train: 0.3, val: 0.3, test: 0.4}")
                assert "Traceback" not in planned
            assert process.returncode == 0, process.communicate()[0]
        assert {run: workspace.result(run)["result"] for run in (FEDAVG, GLOBAL)} == expected
        assert workspace.jobs("tables") == {}
