"""Becomes Snakemake, with a lock of the kernel that ends with it however it ends: so the same
command resumes after a kill.

Two of them at a time in one folder are refused.  Arguments are Snakemake's.
"""

import fcntl
import os
import sys
from pathlib import Path

lock = Path(".snakemake", "feddep.lock")
lock.parent.mkdir(exist_ok=True)
handle = os.open(lock, os.O_RDWR | os.O_CREAT)
try:
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit("feddep: another make runs the workflow in this folder; wait for it or stop it")
os.set_inheritable(handle, True)
os.execv(sys.executable, [sys.executable, "-m", "snakemake", "--nolock", *sys.argv[1:]])
