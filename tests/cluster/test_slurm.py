"""The workflow on SLURM: a cluster of one node on the loopback gives the bytes that this machine gives without it."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from workspace import FEDAVG, GLOBAL, REPOSITORY, SNAKEMAKE, Workspace

PROFILES = REPOSITORY / "workflow" / "profiles"
LOOPBACK = REPOSITORY / "tests" / "cluster" / "loopback.sh"
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
MISSING = [command for command in NEEDED if shutil.which(command, path="/usr/bin:/usr/sbin:/bin:/sbin") is None]
# The command, and then what SLURM knows of its jobs; ended after a quarter of an hour, and the cluster with it.
THEN_JOBS = """ "$@"; status=$?; scontrol --oneliner show jobs; exit $status"""
ON_SLURM = ["timeout", "--kill-after=20", "900", str(LOOPBACK), "bash", "-c", THEN_JOBS, "bash", *SNAKEMAKE]
OPTIONS = {
    "--workflow-profile": ["workflow/profiles/slurm"],
    "--slurm-status-command": ["squeue"],
    "--slurm-init-seconds-before-status-checks": ["2"],
    "--groups": ["prepare=data", "split=data", "partition=data"],
    "--set-resources": ["classify:gpu=1"],
    "--cores": ["1"],
}


def test_profiles_agree_on_what_they_share():
    """What runs again, and what is shown, does not hang on where it runs."""
    profiles = {path.parent.name: yaml.safe_load(path.read_text()) for path in sorted(PROFILES.glob("*/config.yaml"))}
    assert set(profiles) == {"default", "local", "gpu", "slurm"}
    for key in ("rerun-triggers", "rerun-incomplete", "scheduler", "show-failed-logs", "quiet"):
        assert {name: profile[key] for name, profile in profiles.items()} == dict.fromkeys(profiles, profiles["local"][key])


def same(one: Path, other: Path) -> list[str]:
    """The files of results, without what tells of time, after it was made sure that both folders have them alike."""
    names = sorted(
        path.relative_to(one).as_posix()
        for pattern in ("*/**/*.safetensors", "tables/accuracy.*", "tables/partitions.*", "tables/comparisons.csv")
        for path in one.glob(pattern)
    )
    assert [name for name in names if (one / name).read_bytes() != (other / name).read_bytes()] == []
    return names


@pytest.mark.dag
@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_slurm_gives_the_bytes_of_a_local_run(tmp_path: Path):
    here = Workspace.new(tmp_path / "here")
    here.configure(memory={"data": 300, "training": 700, "tables": 300})
    here.run("tables")
    there = Workspace.new(tmp_path / "there", here.directory)
    shutil.copy(here.directory / "config.yaml", there.directory)
    there.snakemake = ON_SLURM
    printed = there.run("tables", *(word for option, values in OPTIONS.items() for word in (option, *values)))
    assert len(same(here.output, there.output)) >= 5 + 5  # graph, split, partition, two models; tables
    for run in (FEDAVG, GLOBAL):
        assert there.result(run)["result"] == here.result(run)["result"]
        assert there.result(run)["key"] == here.result(run)["key"]
    # One submission for all data, one for each run, one for the tables; each gets what its rule asks for.
    jobs = [dict(pair.partition("=")[::2] for pair in line.split()) for line in printed.splitlines() if line.startswith("JobId=")]
    assert [job["JobState"] for job in jobs] == ["COMPLETED"] * 4
    assert sorted(re.search(r"mem=(\d+)M", job["TRES"]).group(1) for job in jobs) == ["300", "300", "700", "700"]
    trained = sorted((job for job in jobs if job.get("TresPerJob") == "gres:gpu:1"), key=lambda job: job["StartTime"])
    assert sorted(job["Comment"] for job in trained) == [
        f"rule_classify_wildcards_quick_{run.replace('/seed', '/').replace('/', '_')}" for run in (FEDAVG, GLOBAL)
    ]
    # There is one GPU: both runs are submitted, and the second waits for the first.
    first, second = trained
    assert second["SubmitTime"] <= first["EndTime"] <= second["StartTime"]
