"""Threads outlive processes: killed at the review, killed at work, gone on with by another process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.agent import ASKED, datamill, project, request, services
from support.project import tree_digest

from datamill.agents.conversation import answer, look, start
from datamill.cli.app import invoke
from datamill.workflows.run_record import list_runs

AT_REVIEW = """
import os, signal, sys
from pathlib import Path
from support.agent import request, services
from datamill.agents.conversation import start
turn = start(request(), services(Path(sys.argv[1])))
print(turn.thread, turn.payload["plan_digest"], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def go_on(folder: Path, *words: str) -> int:
    """Go on with a thread, in this process, which is not the one that was killed."""
    return invoke(["--project", str(folder), "ask", *words])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digests of the outputs of a thread nobody killed."""
    folder = project(tmp_path_factory.mktemp("undisturbed"))
    turn = start(request(), services(folder))
    done = answer(turn.thread, {"type": "approve", "digest": turn.payload["plan_digest"]}, services(folder))
    assert done.kind == "done"
    return tree_digest(folder / "out", without=("plan.yaml",))


def test_killed_at_the_review_and_approved_by_another_process(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    folder = project(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    line = [sys.executable, "-c", AT_REVIEW, str(folder)]
    killed = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    thread, digest = killed.stdout.split()
    assert look(thread, services(folder)).payload["plan_digest"] == digest
    assert go_on(folder, "--thread", thread, f"--approve={digest}") == 0
    assert list_runs(folder)[0].state()["digest"] == digest
    assert tree_digest(folder / "out", without=("plan.yaml",)) == undisturbed


@pytest.mark.parametrize("point", ["approval.record.written", "unit.manifest.written:2", "output.written"])
def test_killed_at_work_and_gone_on_with(point: str, tmp_path: Path, undisturbed: dict[str, str]) -> None:
    folder = project(tmp_path)
    killed = datamill(
        folder, "ask", ASKED, "-i", "rows.jsonl", "-j", "1", "--approve", env={"DATAMILL_CRASH_AT": point}
    )
    assert killed.returncode == -signal.SIGKILL, f"{point} was never passed: {killed.stderr}"
    [thread] = [line.split()[1] for line in killed.stderr.splitlines() if line.startswith("thread ")]
    assert look(thread, services(folder)).kind == "interrupted"
    assert go_on(folder, *(("-c",) if point.startswith("unit") else ("--thread", thread))) == 0
    assert look(thread, services(folder)).kind == "done"
    assert tree_digest(folder / "out", without=("plan.yaml",)) == undisturbed
    assert go_on(folder, "--thread", thread) == 0
    assert len(list_runs(folder)) == 1


def test_off_a_terminal_nothing_prompts_spins_or_colours(tmp_path: Path) -> None:
    folder = project(tmp_path)
    asked = datamill(folder, "ask", ASKED, "-i", "rows.jsonl", env={"FORCE_COLOR": "1", "OPENAI_API_KEY": ""})
    assert asked.returncode == 4
    assert "DM-AGENT-002" in asked.stderr
    assert "--approve" in asked.stderr
    assert asked.stdout == ""
    for mark in ("\x1b", "\r", "you>", "[a]pprove"):
        assert mark not in asked.stderr
    assert "offline" in asked.stderr
