"""One run of a plan at a time: an advisory lock that the kernel gives back when a process dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from datamill.errors import DatamillError
from datamill.workflows.paths import STATE_FOLDER


@contextmanager
def run_lock(project: Path, digest: str) -> Iterator[None]:
    """Hold the lock of a plan.

    Raises:
        DatamillError: `DM-RUN-021` when another process is running this plan in this project.
    """
    folder = project / STATE_FOLDER / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{digest[:16]}.lock").open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            owner = stream.read().strip() or "another process"
            message = f"this plan is being run by process {owner}"
            raise DatamillError("DM-RUN-021", message, fix="datamill runs show @last") from error
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield
