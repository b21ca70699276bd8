"""Processes that a test started, found again by a mark in their environment even when their parent is gone."""

import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path

VARIABLE = "STARTED_FOR_TEST"


def new_mark() -> str:
    """A word for the environment of one test's processes; everything they start inherits it."""
    return uuid.uuid4().hex


def alive(mark: str) -> dict[int, str]:
    """Command lines of the living processes with the mark."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"{VARIABLE}={mark}".encode() not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            if " Z " not in (entry / "stat").read_text(encoding="utf-8", errors="replace"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
        except OSError:  # it ended meanwhile, or is not ours
            continue
    return found


def await_that(condition: Callable[[], bool], seconds: float, step: float = 0.05) -> float:
    """Wait until `condition` holds; the seconds that took. Fails after `seconds`."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "it never came to that"
        time.sleep(step)
    return time.monotonic() - started


def end(mark: str) -> None:
    """Kill what is left, so that a failed test leaves nothing behind."""
    for pid in alive(mark):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it ended by itself
            continue
