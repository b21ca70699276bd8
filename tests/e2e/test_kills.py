"""kill -9 at every commit point and at random instants: the same command then gives the same bytes."""

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest
from support.project import compiled, make_project, tree_digest

from datamill.workflows.approval import approval_of
from datamill.workflows.events import read_events
from datamill.workflows.run_record import list_runs

POINTS = (
    "approval.plan.written", "approval.plan.renamed", "approval.record.written", "approval.record.renamed",
    "run.made", "run.plan.written", "run.plan.renamed", "run.lock.written", "run.state.written", "run.state.renamed",
    "schema.cache.written", "schema.cache.renamed",
    "unit.rows.written", "unit.rows.renamed", "unit.fates.written", "unit.fates.renamed",
    "unit.manifest.written", "unit.manifest.renamed",
    "output.intent.written", "output.intent.renamed", "output.written", "output.renamed", "output.record.written", "output.record.renamed",
    "registry.written", "registry.renamed", "output.card.written", "output.card.renamed",
    "run.drops.written", "run.drops.renamed", "run.data.written", "run.metrics.renamed",
)  # fmt: skip
LATER = ("unit.rows.renamed:7", "unit.manifest.written:13", "unit.fates.written:20", "unit.manifest.renamed:24")


@cache
def plan_digest() -> str:
    """Digest of the small project's plan; the folder is not part of it."""
    with tempfile.TemporaryDirectory() as folder:
        return compiled(make_project(Path(folder))).digest


def command(folder: Path) -> list[str]:
    digest = plan_digest()
    return [
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


def attempt(folder: Path, crash: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DATAMILL_CRASH_AT": crash or ""}
    return subprocess.run(command(folder), env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def clean_run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = make_project(tmp_path_factory.mktemp("clean"))
    assert attempt(folder).returncode == 0
    return tree_digest(folder / "out")


def computed_units(folder: Path) -> list[str]:
    """Keys of units that were computed (not reused), over all attempts."""
    run = list_runs(folder)[-1]
    events = read_events(run.folder / "events.jsonl")
    return [e["key"] for e in events if e["event"] == "unit_done" and "key" in e and not e["reused"]]


def check_recovered(folder: Path, clean_run: dict[str, str]) -> None:
    again = attempt(folder)
    assert again.returncode == 0, again.stderr
    assert tree_digest(folder / "out") == clean_run
    leftovers = list(folder.rglob("*.tmp-*"))
    assert leftovers == []
    units = computed_units(folder)
    assert len(units) == len(set(units)), "a finished unit was computed twice"


@pytest.mark.slow
@pytest.mark.parametrize("point", [*POINTS, *LATER])
def test_kill_at_every_commit_point(point: str, tmp_path: Path, clean_run: dict[str, str]) -> None:
    folder = make_project(tmp_path)
    killed = attempt(folder, point)
    assert killed.returncode == -signal.SIGKILL, f"{point} was never passed: {killed.stderr}"
    check_recovered(folder, clean_run)


@pytest.mark.slow
def test_the_list_of_commit_points_is_complete() -> None:
    """Every commit point in the source of a run is visited above."""
    root = Path(__file__).parents[2]
    files = [*(root / "workflows").glob("*.py"), *(root / "services" / "storage").glob("*.py")]
    found = {
        name
        for file in files
        for name in re.findall(r'"((?:unit|run|output|registry|approval|schema)\.[a-z_.]+)"', file.read_text())
    }
    visited = {point.rsplit(".", 1)[0] for point in POINTS} | {*POINTS, "registry"}
    known = {name for name in found if not name.endswith((".parquet", ".json", ".yaml"))}
    assert known - visited <= {"run.env", "run.report", "run.html"}, known - visited


@pytest.mark.slow
def test_twenty_random_kills(tmp_path: Path, clean_run: dict[str, str]) -> None:
    """Twenty seeded instants of a run; workers and driver die together."""
    generator = random.Random(20261130)
    folder = make_project(tmp_path / "timing")
    started = time.monotonic()
    assert attempt(folder).returncode == 0
    whole = time.monotonic() - started
    killed = 0
    for number in range(20):
        folder = make_project(tmp_path / str(number))
        line = command(folder)
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(whole * (0.3 + 0.7 * generator.random()))
        with contextlib.suppress(ProcessLookupError):  # it may have finished: the check below still holds
            os.killpg(process.pid, signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        check_recovered(folder, clean_run)
    assert killed >= 5, "the instants were all too late to test anything"


def test_a_kill_between_the_files_of_an_approval_leaves_no_approval(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    digest = plan_digest()
    assert attempt(folder, "approval.record.written").returncode == -signal.SIGKILL
    assert approval_of(folder, digest) is None
    assert list_runs(folder) == []
