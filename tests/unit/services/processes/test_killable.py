"""KillableWorker: answers, failures, kills and restarts of a worker whose handler misbehaves on demand."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from datamill.services.processes.killable import CallFailed, CallTimeout, KillableWorker

HANDLER = """
import os, time
from datamill.services.processes.killable import serve

def handle(payload):
    what, value = payload
    if what == "echo":
        print("noise on standard output")
        return value
    if what == "raise":
        raise ValueError(value)
    if what == "die":
        os._exit(3)
    if what == "pid":
        return os.getpid()
    if what == "power":
        return (7 ** 7 ** value) % 10
    return 0

if __name__ == "__main__":
    serve(handle)
"""


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KillableWorker]:
    (tmp_path / "planted_handler.py").write_text(HANDLER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    with KillableWorker("planted_handler") as started:
        yield started


def test_it_is_reused_and_its_output_does_not_disturb(worker: KillableWorker) -> None:
    pid = worker.call(["pid", 0], 30)
    assert worker.call(["echo", {"a": ["é", 1]}], 30) == {"a": ["é", 1]}
    assert worker.call(["pid", 0], 30) == pid != os.getpid()
    assert worker.starts == 1


def test_an_error_is_told_and_the_worker_lives_on(worker: KillableWorker) -> None:
    with pytest.raises(CallFailed, match="ValueError: no such thing"):
        worker.call(["raise", "no such thing"], 30)
    assert worker.call(["echo", 1], 30) == 1
    assert worker.starts == 1


def test_a_computation_that_cannot_be_interrupted_is_killed(worker: KillableWorker) -> None:
    pid = worker.call(["pid", 0], 30)
    began = time.perf_counter()
    with pytest.raises(CallTimeout):
        worker.call(["power", 12], 0.5)
    assert time.perf_counter() - began < 5
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert worker.call(["echo", 2], 30) == 2
    assert worker.starts == 2


def test_a_worker_that_dies_is_replaced(worker: KillableWorker) -> None:
    with pytest.raises(CallFailed, match="died"):
        worker.call(["die", 0], 30)
    assert worker.call(["echo", 3], 30) == 3


def test_closing_twice_is_safe(worker: KillableWorker) -> None:
    worker.call(["echo", 1], 30)
    worker.close()
    worker.close()
    assert worker.call(["echo", 4], 30) == 4
