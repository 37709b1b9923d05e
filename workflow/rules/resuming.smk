"""What lets a workflow that was killed go on when the same command is given again."""

import os
import signal
import threading
from contextlib import contextmanager
from pathlib import Path

from snakemake import persistence

from feddep.utils import workflow_lock

Persistence = getattr(persistence, "PersistenceBase", None) or persistence.Persistence
take_locks = Persistence.lock

if workflow.remote_exec:  # a cluster's job may outlive what submitted it
    os.environ.pop(workflow_lock.ENVIRONMENT, None)


@contextmanager
def lock(self):
    """Take Snakemake's locks, once those of a killed workflow are cleared; dry runs and single jobs take none."""
    workflow_lock.hold(Path(self.path))
    with take_locks(self):
        yield


Persistence.lock = lock


onstart:
    # Snakemake's handler waits for a lock that the main thread, which it interrupts, may hold; so it gets a thread of its own.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=workflow.scheduler.exit_gracefully).start())
