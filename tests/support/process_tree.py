"""Runs a command and watches the memory of it and everything it starts."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
INTERVAL = 0.1


@dataclass(frozen=True)
class Watched:
    """A finished command.

    Attributes:
        code: exit status.
        out: stdout and stderr.
        seconds: wall time.
        cpu_seconds: user and system time of it and of the children it waited for.
        peak_bytes: largest sum of private memory (and of shared memory once) of all its processes.
    """

    code: int
    out: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def watch(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Watched:
    """Run `command` in `folder` to its end."""
    started, before = time.perf_counter(), os.times()
    process = subprocess.Popen(
        command, cwd=folder, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    peak = [0]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(INTERVAL):
            peak[0] = max(peak[0], tree_bytes(process.pid))

    watcher = threading.Thread(target=sample, daemon=True)
    watcher.start()
    out, _ = process.communicate()
    done.set()
    watcher.join()
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return Watched(process.returncode, out, time.perf_counter() - started, cpu, peak[0])


def tree_bytes(root: int) -> int:
    """Resident memory of `root` and its descendants; a file mapped by several counts once, in the largest of them."""
    sizes = [size for pid in _descendants(root) if (size := _resident(pid)) is not None]
    return sum(private for private, _ in sizes) + max((shared for _, shared in sizes), default=0)


def _descendants(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                waiting += [int(child) for child in children.read_text(encoding="ascii").split()]
            except OSError:  # the thread ended between the listing and the reading
                continue
    return found


def _resident(pid: int) -> tuple[int, int] | None:
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:  # the process ended
        return None
    return (int(resident) - int(shared)) * PAGE, int(shared) * PAGE
