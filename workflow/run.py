"""Runs Snakemake under a lock of the kernel, which ends with this process however it ends: so the same command resumes after a kill.

Two of them at a time in one folder are refused.  Arguments are Snakemake's.
"""

import subprocess
import sys
from pathlib import Path

from filelock import FileLock, Timeout

lock = Path(".snakemake", "feddep.lock")
lock.parent.mkdir(exist_ok=True)
try:
    with FileLock(lock, timeout=0):
        sys.exit(subprocess.run([Path(sys.executable).with_name("snakemake"), "--nolock", *sys.argv[1:]]).returncode)
except Timeout:
    sys.exit("feddep: another make runs the workflow in this folder; wait for it or stop it")
