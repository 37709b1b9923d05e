"""GPUs by a made-up ``nvidia-smi``: each job has one, and a killed job's is free again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from feddep.utils import gpus
from workspace import REPOSITORY, list_gpus

JOB = """
import os, sys
from pathlib import Path
from feddep.utils.gpus import assigned
with assigned(Path(sys.argv[1]), int(sys.argv[2])):
    print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", list_gpus(tmp_path / "bin", 2))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))


def started(places: Path, trainings: int) -> subprocess.Popen[str]:
    """A job that holds its GPU until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", JOB, str(places), str(trainings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def gpu_of(job: subprocess.Popen[str]) -> str:
    assert job.stdout is not None
    return job.stdout.readline().strip()


def test_gpus_are_counted(monkeypatch: pytest.MonkeyPatch):
    assert gpus.count() == 2  # and not the slices of one
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert gpus.count() == 1
    monkeypatch.setenv("PATH", "/nowhere")
    assert gpus.count() == 0


def test_each_job_has_a_gpu_of_its_own_and_a_kill_frees_it(tmp_path: Path):
    first, second = started(tmp_path / "places", 1), started(tmp_path / "places", 1)
    assert {gpu_of(first), (freed := gpu_of(second))} == {"0", "1"}
    third = started(tmp_path / "places", 1)
    with pytest.raises(subprocess.TimeoutExpired):
        third.wait(1)
    second.kill()
    assert gpu_of(third) == freed
    for job in (first, second, third):
        job.communicate()
    assert (first.returncode, third.returncode) == (0, 0)


def test_jobs_share_gpus_evenly_where_they_may(tmp_path: Path):
    jobs = [started(tmp_path / "places", 2) for _ in range(4)]
    seen = [gpu_of(job) for job in jobs]
    assert sorted(seen) == ["0", "0", "1", "1"]
    for job in jobs:
        job.communicate()


def test_a_choice_of_the_scheduler_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with gpus.assigned(tmp_path / "places", 1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"
    assert not (tmp_path / "places").exists()
