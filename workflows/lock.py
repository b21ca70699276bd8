"""One run of a plan at a time: an advisory lock that the kernel gives back when a process dies."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from datamill.errors import DatamillError
from datamill.workflows.paths import STATE_FOLDER


@contextmanager
def run_lock(project: Path, digest: str, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock of a plan.

    Args:
        project: project folder.
        digest: digest of the plan.
        on_wait: called once with the owner's process number when the lock is taken; the call then waits as long as it
            takes, and Ctrl-C ends the wait. None refuses at once.

    Raises:
        DatamillError: `DM-RUN-021` when another process is running this plan in this project and nobody waits.
    """
    folder = project / STATE_FOLDER / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{digest[:16]}.lock").open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = _owner(stream)
            if on_wait is None:
                message = f"this plan is being run by process {owner}"
                raise DatamillError("DM-RUN-021", message, fix="datamill runs show @last") from error
            on_wait(owner)
            fcntl.flock(stream, fcntl.LOCK_EX)
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield


def _owner(stream: IO[str]) -> str:
    stream.seek(0)
    return stream.read().strip() or "unknown"
