"""Two processes approve and run the same plan at the same instant: it runs once, and both tell of the same run."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.project import approved_run, compiled, make_project, tree_digest

from datamill.errors import DatamillError, ExitCode
from datamill.workflows import execute
from datamill.workflows.approval import approval_of, approve
from datamill.workflows.events import read_events
from datamill.workflows.execute import RunRequest, run_plan
from datamill.workflows.lock import run_lock
from datamill.workflows.plan import Plan
from datamill.workflows.run_record import list_runs
from datamill.workflows.runner import RunOptions

ROWS = 700
"""Enough that a run (36 shards through six steps) outlasts the difference between two process starts."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", count=ROWS)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one run without company writes."""
    folder = make_project(tmp_path_factory.mktemp("alone"), count=ROWS)
    approved_run(folder)
    return tree_digest(folder / "out", without=("card",))


def start(folder: Path, *more: str, crash: str = "") -> subprocess.Popen[str]:
    """`datamill run plan.yaml --approve DIGEST` as a process of its own."""
    line = [sys.executable, "-m", "datamill", "--project", str(folder), "run", "plan.yaml", "-j", "1"]
    line += ["--approve", compiled(folder).digest, *more]
    environment = {**os.environ, "DATAMILL_CRASH_AT": crash}
    return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(*processes: subprocess.Popen[str]) -> list[tuple[str, str]]:
    """Wait for all; what each wrote to stdout and stderr."""
    return [process.communicate(timeout=120) for process in processes]


def wait_for(folder: Path, event: str) -> None:
    """Until the run of the project has said `event`."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if any(e["event"] == event for run in list_runs(folder) for e in read_events(run.folder / "events.jsonl")):
            return
        time.sleep(0.02)
    pytest.fail(f"no {event} within a minute")


def run_beside(plan: Plan, folder: Path, **options: Any) -> str:
    """Run the plan in this process, which holds its lock already; the id of the run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "run_lock", lambda *_: contextlib.nullcontext())
        return run_plan(plan, RunRequest(folder, workers=1, options=RunOptions(**options))).run_id


def events_of(folder: Path) -> list[dict[str, Any]]:
    (run,) = list_runs(folder)
    return read_events(run.folder / "events.jsonl")


def waiters(told: Sequence[tuple[str, str]]) -> list[int]:
    return [number for number, (_, err) in enumerate(told) if "waiting: process" in err]


def test_two_processes_at_the_same_instant_run_the_plan_once(project: Path, alone: dict[str, str]) -> None:
    both = [start(project, "--json"), start(project, "--json")]
    told = finish(*both)
    assert [process.returncode for process in both] == [0, 0], told
    (run,) = list_runs(project)
    assert run.state()["status"] == "done"
    results = [json.loads(out) for out, _ in told]
    assert {result["run_id"] for result in results} == {run.id}
    assert sorted(result["waited"] for result in results) == [False, True]
    assert results[0]["rows_out"] == results[1]["rows_out"]
    assert results[0]["outputs"] == results[1]["outputs"]
    assert tree_digest(project / "out", without=("card",)) == alone
    events = events_of(project)
    assert [event["event"] for event in events].count("run_started") == 1
    units = [event["key"] for event in events if event["event"] == "unit_done" and event.get("reused") is False]
    assert len(units) == len(set(units)), "a unit was made twice"
    assert list(project.rglob("*.tmp-*")) == []
    assert approval_of(project, compiled(project).digest) is not None
    (waiter,) = waiters(told)
    assert results[waiter]["waited"]
    assert f"waiting: process {both[1 - waiter].pid} is running this plan" in told[waiter][1]
    assert "DONE by the other process" in told[waiter][1]


@pytest.mark.slow
def test_five_processes_run_the_plan_once_too(project: Path, alone: dict[str, str]) -> None:
    crowd = [start(project) for _ in range(5)]
    told = finish(*crowd)
    assert [process.returncode for process in crowd] == [0] * 5, told
    assert len(list_runs(project)) == 1
    assert [event["event"] for event in events_of(project)].count("run_started") == 1
    assert tree_digest(project / "out", without=("card",)) == alone


def test_the_one_that_waits_goes_on_when_the_first_is_killed(project: Path, alone: dict[str, str]) -> None:
    first = start(project, crash="unit.manifest.renamed:90")
    wait_for(project, "run_started")
    second = start(project, "--json")
    (_, _), (out, err) = finish(first, second)
    assert first.returncode == -signal.SIGKILL
    assert second.returncode == 0, err
    (run,) = list_runs(project)
    result = json.loads(out)
    assert (result["run_id"], result["resumed"], result["waited"]) == (run.id, True, False)
    assert run.state()["pid"] == second.pid
    assert tree_digest(project / "out", without=("card",)) == alone


def test_ctrl_c_ends_the_wait_and_not_the_run(project: Path) -> None:
    first = start(project)
    wait_for(project, "run_started")
    second = start(project)
    assert second.stderr is not None
    assert "waiting" in second.stderr.readline()
    second.send_signal(signal.SIGINT)
    assert second.wait(timeout=30) == ExitCode.INTERRUPTED
    finish(first, second)
    assert first.returncode == 0
    (run,) = list_runs(project)
    assert run.state()["status"] == "done"


@pytest.mark.parametrize("more", [["--from", "exact"], ["--fresh"], ["--until", "size"], ["--limit", "5"]])
def test_one_that_asks_for_something_else_waits_and_does_it(tmp_path: Path, more: list[str]) -> None:
    folder = make_project(tmp_path)
    plan = compiled(folder)
    approve(folder, plan, "test")
    with run_lock(folder, plan.digest):
        second = start(folder, *more, "--json")
        assert second.stderr is not None
        assert f"waiting: process {os.getpid()}" in second.stderr.readline()
        done = run_beside(plan, folder)
    ((out, err),) = finish(second)
    result = json.loads(out)
    assert second.returncode == 0, err
    assert not result["waited"]
    assert result["run_id"] != done


@pytest.mark.parametrize(("part", "whole"), [({"until": "size"}, False), ({"limit": 5}, False), ({}, True)])
def test_only_the_run_of_the_whole_plan_is_taken_for_the_answer(
    tmp_path: Path, part: dict[str, Any], whole: bool
) -> None:
    folder = make_project(tmp_path)
    plan = compiled(folder)
    approve(folder, plan, "test")
    with run_lock(folder, plan.digest):
        second = start(folder, "--json")
        assert second.stderr is not None
        assert "waiting" in second.stderr.readline()
        run_beside(plan, folder, **part)
    ((out, err),) = finish(second)
    assert second.returncode == 0, err
    assert json.loads(out)["waited"] is whole
    assert json.loads(out)["status"] == "done"
    assert (folder / "out" / "clean.jsonl").read_text().count("\n") == 40


def test_a_failed_gate_is_told_by_both(tmp_path: Path) -> None:
    folder = make_project(tmp_path, count=ROWS)
    text = (folder / "plan.yaml").read_text() + "checks: [{on: clean, metric: rows, min: 99999}]\n"
    (folder / "plan.yaml").write_text(text)
    both = [start(folder, "--json"), start(folder, "--json")]
    told = finish(*both)
    assert [process.returncode for process in both] == [5, 5], told
    assert len(list_runs(folder)) == 1


def test_the_same_command_one_after_the_other_is_two_runs(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    for _ in range(2):
        process = start(folder, "--json")
        ((out, err),) = finish(process)
        assert process.returncode == 0, err
        assert not json.loads(out)["waited"]
    assert len(list_runs(folder)) == 2


def test_without_wait_the_second_is_refused_at_once(project: Path) -> None:
    first = start(project)
    wait_for(project, "run_started")
    with pytest.raises(DatamillError) as refused:
        run_plan(compiled(project), RunRequest(project, workers=1))
    assert refused.value.code == "DM-RUN-021"
    assert str(first.pid) in str(refused.value)
    finish(first)
    assert len(list_runs(project)) == 1
