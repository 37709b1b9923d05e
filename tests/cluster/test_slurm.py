"""The workflow on SLURM: a cluster of one node on the loopback gives the numbers that this machine
gives without it.
"""

import re
import shutil
from pathlib import Path

import pytest

from feddep.experiment import plan, verification
from workspace import CONFIG, REPOSITORY, SNAKEMAKE, Workspace

PROFILES = REPOSITORY / "workflow" / "profiles"
LOOPBACK = REPOSITORY / "tests" / "cluster" / "loopback.sh"
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
MISSING = [
    command
    for command in NEEDED
    if shutil.which(command, path="/usr/bin:/usr/sbin:/bin:/sbin") is None
]
# The command, and then what SLURM knows of its jobs; ended after a quarter of an hour, and the
# cluster with it.
THEN_JOBS = """ "$@"; status=$?; scontrol --oneliner show jobs; exit $status"""
ON_SLURM = [
    "timeout",
    "--kill-after=20",
    "900",
    str(LOOPBACK),
    "bash",
    "-c",
    THEN_JOBS,
    "bash",
    *SNAKEMAKE,
]
OPTIONS = {
    "--workflow-profile": [str(PROFILES / "slurm")],
    "--slurm-status-command": ["squeue"],
    "--slurm-init-seconds-before-status-checks": ["2"],
    "--groups": ["prepare=data", "split=data", "partition=data"],
    "--set-resources": ["train:gpu=1"],
}


@pytest.mark.dag
@pytest.mark.timeout(1500)
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_slurm_gives_the_numbers_of_this_machine(tmp_path: Path):
    workspace = Workspace(tmp_path, ON_SLURM)
    # As runs on one graph would share a job.
    datasets = dict.fromkeys(("mini", "other"), CONFIG["datasets"]["mini"])
    table = {**CONFIG["tables"][0], "datasets": list(datasets), "methods": ["fedavg"]}
    workspace.configure(memory={"data": 300, "training": 700}, datasets=datasets, tables=[table])
    printed = workspace.run(
        *(word for option, values in OPTIONS.items() for word in (option, *values))
    )
    for run in plan.runs(workspace.config):
        anew = verification.Trainer(workspace.config, tmp_path / "anew").record(run)
        assert verification.differences(workspace.config, anew, run) == {}
    # One submission for the data of each graph, one for each run; each gets what its rule asks for.
    jobs = [
        dict(pair.partition("=")[::2] for pair in line.split())
        for line in printed.splitlines()
        if line.startswith("JobId=")
    ]
    assert [job["JobState"] for job in jobs] == ["COMPLETED"] * 4
    assert sorted(re.search(r"mem=(\d+)M", job["TRES"]).group(1) for job in jobs) == [
        "300",
        "300",
        "700",
        "700",
    ]
    # There is one GPU: both runs are submitted, and the second waits for the first.
    first, second = sorted(
        (job for job in jobs if job.get("TresPerJob") == "gres:gpu:1"),
        key=lambda job: job["StartTime"],
    )
    assert second["SubmitTime"] <= first["EndTime"] <= second["StartTime"]
