"""Spark with two executors of their own (`local-cluster`), and what happens on it: `python on_spark_cluster.py FOLDER`.

Spark is started once; runs use the session that is there. It leaves `facts.json` in the folder.
"""

import os
import signal
import sys
import time
import warnings
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
from support.cluster_facts import disk_error, disturbed_run, faulty_runs, tell, where

from datamill.errors import DatamillError
from datamill.services.engines.spark import SparkEngine
from datamill.services.engines.visibility import Nonce

MASTER = "local-cluster[2,1,1024]"


def executors() -> list[psutil.Process]:
    """Executor JVMs below this process."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it ended between the listing and the reading
            if any("CoarseGrainedExecutorBackend" in word for word in process.cmdline()):
                found.append(process)
    return found


def python_workers(executor: psutil.Process) -> list[psutil.Process]:
    """Python workers of an executor: children of its daemon."""
    return [worker for daemon in executor.children() for worker in daemon.children()]


def wait_for(condition: Any) -> Any:
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)
    return found


def busy(executor: psutil.Process) -> list[psutil.Process]:
    """Python workers of the executor that compute."""
    found = []
    with suppress(psutil.Error):
        found = [worker for worker in python_workers(executor) if worker.cpu_percent(0.1) > 30]
    return found


def kill_both(engine: SparkEngine) -> dict[str, Any]:
    """SIGKILL a Python worker at work on one executor, then the JVM of the other with tasks in hand."""
    tracker = engine.connection.session.sparkContext.statusTracker()
    wait_for(tracker.getActiveStageIds)
    first, second = sorted(executors(), key=lambda process: process.pid)
    worker = wait_for(lambda: busy(first))[0]
    worker.send_signal(signal.SIGKILL)
    wait_for(lambda: busy(second))
    second.send_signal(signal.SIGKILL)
    return {"worker": worker.pid, "executor": second.pid, "stages": len(tracker.getActiveStageIds())}


def lost(folder: Path) -> Nonce:
    """A word that is gone before a worker looks for it, as on a machine that does not mount the folder."""
    nonce = Nonce(folder / "visible", "written")
    nonce.path.unlink(missing_ok=True)
    return nonce


def unseen(engine: SparkEngine) -> dict[str, Any]:
    try:
        with patch("datamill.services.engines.spark_session.Nonce.write", lost):
            engine.connection.check_seen(MASTER, engine.scratch)
    except DatamillError as error:
        return {"exit": int(error.exit_code), "text": str(error)}
    return {}


def main(folder: Path) -> None:
    facts: dict[str, Any] = {}
    times = [time.monotonic()]
    scratch = folder / ".datamill"
    scratch.mkdir(exist_ok=True)
    conf = {"spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]}
    with SparkEngine(master=MASTER, scratch=scratch, conf=conf) as engine:
        times.append(time.monotonic())
        facts["workers"] = engine.workers
        facts["where"] = [found for _, found in engine.map_units(where, list(range(4)))]
        facts["disk"] = disk_error(engine)
        times.append(time.monotonic())
        facts["faulty"] = faulty_runs(folder, "spark")
        times.append(time.monotonic())
        facts["killed"] = disturbed_run(folder, "spark", lambda: kill_both(engine))
        times.append(time.monotonic())
        facts["still"] = engine.connection.session.range(3).count()
        facts["unseen"] = unseen(engine)
    times.append(time.monotonic())
    facts["seconds"] = [round(b - a, 1) for a, b in pairwise(times)]
    tell(facts, folder / "facts.json")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
