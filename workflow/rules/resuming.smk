"""What lets a workflow that was killed go on when the same command is given again."""

import os
import signal
import threading
from contextlib import contextmanager
from pathlib import Path

from snakemake import persistence

from feddep.utils import workflow_lock

if workflow.remote_exec:  # a cluster's job may outlive what submitted it
    os.environ.pop(workflow_lock.ENVIRONMENT, None)

Persistence = getattr(persistence, "PersistenceBase", None) or persistence.Persistence  # by version
FilePersistence = getattr(getattr(persistence, "file", None), "FilePersistence", None)
take_locks = Persistence.lock
marked_incomplete = getattr(FilePersistence, "_filter_incomplete_keys", None)


@contextmanager
def lock(self):
    """Take Snakemake's locks, once those of a killed workflow are cleared; dry runs and single jobs take none."""
    workflow_lock.hold(Path(self.path))
    with take_locks(self):
        yield


def incomplete(self, keys):
    """The files that Snakemake has marked, and those whose metadata a power loss damaged: what they were made from is unknown."""
    keys = list(keys)
    recorded = [key for key in keys if os.path.exists(self._record_path(self._metadata_path, key))]
    return marked_incomplete(self, keys) | {key for key in recorded if self._read_record(key) is None}


Persistence.lock = lock
if marked_incomplete is not None:
    FilePersistence._filter_incomplete_keys = incomplete


onstart:
    # Snakemake's handler waits for a lock that the main thread, which it interrupts, may hold; so it gets a thread of its own.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=workflow.scheduler.exit_gracefully).start())
