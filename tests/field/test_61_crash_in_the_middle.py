"""Case 61: a job of three steps is killed at five points and started again."""

import os
import runpy
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.cases import project_of
from support.project import tree_digest

from datamill.workflows.compile import CompileOptions, compile_file
from datamill.workflows.events import read_events
from datamill.workflows.run_record import list_runs

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "61-crash-in-the-middle"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")
POINTS = (
    "unit.rows.written:9",
    "unit.rows.renamed:10",
    "unit.fates.renamed:11",
    "unit.manifest.written:12",
    "output.written:1",
)
"""After step 1, which commits a unit and a marker for each of four files; the decisions of step 2 are the ninth."""
READING = 4
"""Units of step 1: one a shard file."""


def fresh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The case in version 0 of the format, as written, with `format_version` so that it says what it is."""
    project_of(CASE, folder)
    monkeypatch.chdir(folder)
    runpy.run_path(str(folder / "make_input.py"))
    text = (
        (folder / "workflow.yaml")
        .read_text()
        .replace("min: 6", "unit: chars, min: 6")
        .replace("length_filter\n    params: {column: text", "length_filter\n    params: {columns: [text]")
    )
    (folder / "plan.yaml").write_text(f"format_version: 0\n{text}")
    return folder


def attempt(folder: Path, crash: str = "") -> subprocess.CompletedProcess[str]:
    digest = compile_file(folder / "plan.yaml", CompileOptions(folder)).digest
    command = [
        sys.executable,
        "-m",
        "datamill",
        "--project",
        str(folder),
        "run",
        "plan.yaml",
        "-j",
        "1",
        "--approve",
        digest,
    ]
    environment = {**os.environ, "DATAMILL_CRASH_AT": crash}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> str:
    with pytest.MonkeyPatch.context() as patch:
        folder = fresh(tmp_path_factory.mktemp("unbroken"), patch)
        done = attempt(folder)
        assert done.returncode == 0, done.stderr
        rows = (folder / "out.jsonl").read_text().splitlines()
        assert len(rows) == 120, "text 0 to text 119, each once, all of six characters or more"
        return tree_digest(folder)["out.jsonl"]


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_killed_and_started_again_it_gives_the_unbroken_result(
    point: str, tmp_path: Path, unbroken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fresh(tmp_path, monkeypatch)
    killed = attempt(folder, point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (folder / "out.jsonl").exists()
    again = attempt(folder)
    assert again.returncode == 0, again.stderr
    assert tree_digest(folder)["out.jsonl"] == unbroken
    assert list(folder.rglob("*.tmp-*")) == []
    (run,) = list_runs(folder)
    events = read_events(run.folder / "events.jsonl")
    starts = [index for index, event in enumerate(events) if event["event"] == "run_started"]
    computed = Counter(e["key"] for e in events if e["event"] == "unit_done" and "key" in e and not e["reused"])
    assert max(computed.values(), default=1) == 1, "no finished unit is computed twice"
    done = [event for event in events[starts[-1] :] if event["event"] == "step_done" and event["step"] == "load"]
    assert done[0]["reused"] == done[0]["shards"] == READING, "step 1 is not run again"


def test_without_a_kill_nothing_is_left_over(tmp_path: Path, unbroken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fresh(tmp_path, monkeypatch)
    assert attempt(folder).returncode == 0
    assert tree_digest(folder)["out.jsonl"] == unbroken
    assert attempt(folder).returncode == 0
    assert tree_digest(folder)["out.jsonl"] == unbroken, "the second run takes the output of the first for no input"
