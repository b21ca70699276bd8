"""A driver that is killed, and all that can be wrong before work starts, seen from the command line on every engine."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.cli import run_cli
from support.cluster_facts import digests
from support.marked import VARIABLE, alive, await_that, end, new_mark
from support.near_corpus import SHARDS, make_corpus
from support.project import approved_run, compiled, make_project

from datamill.workflows.events import read_events
from datamill.workflows.run_record import RunRecord, list_runs, unfinished

COUNT = 1600


@dataclass(frozen=True)
class Attempt:
    """A command line that ended."""

    code: int
    err: str


def command(folder: Path, executor: str, digest: str) -> list[str]:
    options = ["run", "plan.yaml", "-q", "-e", executor, "-j", "2", "--approve", digest]
    return [sys.executable, "-m", "datamill", "--project", str(folder), *options]


def attempt(folder: Path, executor: str, digest: str, mark: str) -> Attempt:
    ran = subprocess.run(
        command(folder, executor, digest), env=environment(mark), capture_output=True, text=True, check=False,
        timeout=200,
    )  # fmt: skip
    return Attempt(ran.returncode, ran.stderr)


def environment(mark: str, **more: str) -> dict[str, str]:
    return {**os.environ, VARIABLE: mark, "RAY_ADDRESS": "", **more}


@pytest.fixture
def mark() -> Iterator[str]:
    """Mark of everything this test starts; what is left of it is killed."""
    word = new_mark()
    yield word
    end(word)


def news(folder: Path) -> list[dict[str, Any]]:
    """Events of the newest run, over all attempts."""
    runs = list_runs(folder)
    return list(read_events(runs[-1].folder / "events.jsonl")) if runs else []


def killed_in_the_middle(folder: Path, executor: str, digest: str, mark: str) -> None:
    """Start the command and SIGKILL its driver once deduplication is at work, its parent step all committed."""

    def deduplicating() -> bool:
        assert process.poll() is None, "it ended before it could be killed"
        return any(e["event"] == "step_started" and e["steps"] == ["near"] for e in news(folder))

    line = command(folder, executor, digest)
    process = subprocess.Popen(line, env=environment(mark), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await_that(deduplicating, 120)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not any(e["event"] == "step_done" and e["step"] == "near" for e in news(folder))


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["ray", "spark"])
def test_a_killed_driver(executor: str, tmp_path: Path, mark: str) -> None:
    """The same command goes on with finished units, and so does another engine.

    What the dead driver had started ends with it; two small agents of Ray may linger meanwhile and are in nobody's way.
    """
    folder, still = tmp_path / "project", tmp_path / "undisturbed"
    for place in (folder, still):
        place.mkdir()
        make_corpus(place, COUNT)
    approved_run(still, workers=1)
    digest = compiled(folder).digest
    killed_in_the_middle(folder, executor, digest, mark)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(folder, elsewhere, symlinks=True)
    await_that(lambda: all("Agent" in line for line in alive(mark).values()), 20)
    for place, engine in ((elsewhere, "local"), (folder, executor)):
        before = len(news(place))
        ran = attempt(place, engine, digest, mark)
        assert ran.code == 0, ran.err
        later = news(place)[before:]
        reused = {e["step"]: e["reused"] for e in later if e["event"] == "step_done"}
        assert (reused["load"], reused["tidy"]) == (SHARDS, SHARDS), "finished units were computed again"
        assert digests(place) == digests(still)
        assert len(list_runs(place)) == 1, "it was not the same run that went on"
        assert list(place.rglob("*.tmp-*")) == []
    await_that(lambda: not alive(mark), 90)  # Ray's agents look for their node for up to a minute


@dataclass(frozen=True)
class Trouble:
    """Something that is not there when a run begins."""

    executor: str
    code: str
    says: str
    variables: dict[str, str]


def blocked(folder: Path, package: str) -> dict[str, str]:
    """An environment in which `package` cannot be found."""
    place = folder / "blocked"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] == {package!r}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "import importlib.util as util\n"
        "real = util.find_spec\n"
        f"util.find_spec = lambda name, *rest: None if name == {package!r} else real(name, *rest)\n"
        "sys.meta_path.insert(0, Blocker())\n",
        encoding="ascii",
    )
    return {"PYTHONPATH": str(place)}


def old_java(folder: Path) -> str:
    java = folder / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n", encoding="ascii")
    java.chmod(0o755)
    return str(java.parents[1])


def troubles(folder: Path) -> list[Trouble]:
    return [
        Trouble("spark", "DM-ENGINE-021", "there is no Java", {"JAVA_HOME": "", "PATH": "/nowhere"}),
        Trouble("spark", "DM-ENGINE-021", "Java 11 is too old", {"JAVA_HOME": old_java(folder)}),
        Trouble("spark", "DM-ENGINE-020", "PySpark is not installed", blocked(folder, "pyspark")),
        Trouble("ray", "DM-ENGINE-011", "no Ray cluster answers at 127.0.0.1:9", {"RAY_ADDRESS": "127.0.0.1:9"}),
    ]


@pytest.mark.parametrize("number", range(4), ids=["no-java", "old-java", "no-pyspark", "no-cluster"])
def test_trouble_before_work_starts_is_one_error(number: int, tmp_path: Path, mark: str) -> None:
    trouble = troubles(tmp_path)[number]
    folder = make_project(tmp_path / "project")
    line = command(folder, trouble.executor, compiled(folder).digest)
    ran = subprocess.run(
        line, env={**environment(mark), **trouble.variables}, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 6, ran.stderr
    assert ran.stderr.count("DM-") == 1
    assert f"{trouble.code} {trouble.says}" in ran.stderr
    assert "fix: " in ran.stderr
    assert len(ran.stderr.splitlines()) <= 3
    assert not any(event["event"] == "step_started" for event in news(folder))
    assert unfinished(folder, compiled(folder).digest) is not None
    assert alive(mark) == {}


def test_a_spark_master_that_does_not_answer(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    text = (folder / "plan.yaml").read_text(encoding="utf-8")
    text = text.replace("run: {", "run: {spark: {master: 'spark://127.0.0.1:9'}, ")
    (folder / "plan.yaml").write_text(text, encoding="utf-8")
    ran = run_cli(folder, ["run", "plan.yaml", "-q", "-e", "spark", "--approve", compiled(folder).digest])
    assert (ran.code, ran.err.count("DM-")) == (6, 1)
    assert "DM-ENGINE-022 no Spark master answers at spark://127.0.0.1:9" in ran.err


def test_a_full_disk_is_one_error_and_the_run_goes_on_later(tmp_path: Path, mark: str) -> None:
    """Units lie on a disk of their own that is too small; it grows, and the same command goes on."""
    folder = make_project(tmp_path / "project", count=1200)
    store = folder / ".datamill"
    store.mkdir()
    line = command(folder, "local", compiled(folder).digest)
    script = (
        f'mount -t tmpfs -o size=400k none "{store}" && "$@"; first=$?; '
        f'mount -o remount,size=64m "{store}"; echo ---- >&2; "$@"; echo "$first $?"'
    )
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *line], env=environment(mark), capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    if "unshare" in ran.stderr or "mount:" in ran.stderr:
        pytest.skip("this machine does not allow mount namespaces")
    first, second = ran.stdout.split()[-2:]
    before, after = ran.stderr.split("----\n")
    assert (first, second) == ("1", "0"), ran.stderr
    assert before.count("DM-") == 1
    assert "No space left on device" in before
    assert len(before.splitlines()) <= 3
    assert "DM-" not in after
    events = news(folder)
    assert [e["event"] for e in events].count("run_started") == 2
    stopped = [e for e in events if e["event"] == "run_stopped"]
    assert [(e["status"], e["code"]) for e in stopped] == [("failed", "DM-RUN-011")]
    again = events[events.index(stopped[0]) + 1 :]
    assert sum(e["reused"] for e in again if e["event"] == "step_done") > 0
    assert list_runs(folder) == [RunRecord(list_runs(folder)[0].folder)]
    still = make_project(tmp_path / "undisturbed", count=1200)
    approved_run(still)
    assert digests(folder) == digests(still)
