"""What goes to stdout and what to stderr, on any terminal and in any locale."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.cli import run_cli
from support.project import compiled, make_project, tree_digest, write_rows

from datamill.cli.session import hoist_globals, may_ask, wants_color

ANSI = re.compile(r"\x1b\[")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_project(tmp_path_factory.mktemp("talk"), count=30)
    write_rows(folder / "wörter.jsonl", [{"text": "语言 ünïcode \U0001f600"}])
    assert run_cli(folder, ["run", "plan.yaml", "-j", "1", "--approve", compiled(folder).digest]).code == 0
    return folder


def command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "datamill", "--project", str(folder), *words]


JSON_COMMANDS = [
    ["plan", "show", "plan.yaml"], ["plan", "check", "plan.yaml"], ["plan", "diff", "plan.yaml", "plan.yaml"],
    ["plan", "estimate", "plan.yaml"], ["plan", "graph", "plan.yaml"], ["plan", "graph", "plan.yaml", "--format", "svg"],
    ["plan", "schema"], ["run", "plan.yaml"], ["run", "plan.yaml", "-n"], ["runs", "list"], ["runs", "show"], ["runs", "logs"],
    ["data", "head"], ["data", "head", "wörter.jsonl"], ["data", "stats"], ["data", "drops"], ["data", "diff", "@last", "@last"],
    ["data", "card"], ["report"], ["ops", "list"], ["ops", "show", "dedup.minhash"], ["ops", "search", "language"],
    ["doctor"], ["config", "show"], ["config", "path"], ["models", "list"], ["ask", "remove duplicates", "-i", "rows.jsonl", "--plan-only"],
]  # fmt: skip


@pytest.mark.parametrize("words", JSON_COMMANDS, ids=lambda words: "_".join(words[:2]))
def test_json_is_one_document_on_stdout(project: Path, words: list[str]) -> None:
    after = run_cli(project, [*words, "--json"])
    assert after.code == 0
    assert isinstance(after.data, dict | list)
    assert not ANSI.search(after.out + after.err)


@pytest.mark.parametrize("words", [["runs", "show"], ["config", "show"], ["ops", "list"]])
def test_global_options_may_stand_before_or_after(project: Path, words: list[str]) -> None:
    assert run_cli(project, ["--json", *words]).data == run_cli(project, [*words, "--json"]).data
    quiet = run_cli(project, [*words, "-q"])
    assert quiet.err == ""
    assert quiet.out == run_cli(project, words).out != ""


def test_global_options_are_found_wherever_they_stand() -> None:
    assert hoist_globals(["run", "p.yaml", "--json", "-q"]) == ["--json", "-q", "run", "p.yaml"]
    assert hoist_globals(["run", "--project", "x", "p"]) == ["--project", "x", "run", "p"]
    assert hoist_globals(["run", "--project=x", "p"]) == ["--project=x", "run", "p"]
    assert hoist_globals(["ask", "a", "--approve", "-i", "f"]) == ["ask", "a", "--approve=", "-i", "f"]
    assert hoist_globals(["ask", "--", "--json"]) == ["ask", "--", "--json"]
    assert hoist_globals(["run", "--project"]) == ["--project", "run"]


def test_results_go_to_stdout_and_talk_to_stderr(project: Path) -> None:
    shown = run_cli(project, ["plan", "show", "plan.yaml"])
    assert shown.err == ""
    assert shown.out.startswith("PLAN  small  digest ")
    assert max(len(line) for line in shown.out.splitlines()) <= 100
    ran = run_cli(project, ["run", "plan.yaml"])
    assert ran.out == ""
    assert run_cli(project, ["run", "plan.yaml", "-q"]).err == ""
    stream = run_cli(project, ["run", "plan.yaml", "--json-stream"])
    assert all(line.startswith('{"') for line in stream.out.splitlines())
    assert len(stream.out.splitlines()) > 5


def test_off_a_terminal_nothing_is_coloured_or_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    assert not wants_color(no_color=False)
    assert not may_ask(no_input=False)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("CI", "true")])
def test_on_a_terminal_colour_can_be_declined(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    for variable in ("NO_COLOR", "CI"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert wants_color(no_color=False)
    assert not wants_color(no_color=True)
    monkeypatch.setenv(name, value)
    assert not wants_color(no_color=False)


def test_forced_colour_does_not_reach_a_pipe(project: Path) -> None:
    environment = {**os.environ, "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TERM": "xterm-256color"}
    for words, code in ((["run", "plan.yaml", "--fresh", "-j", "1"], 0), (["rnu"], 2), (["run", "--help"], 0)):
        done = subprocess.run(
            command(project, *words),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == code, done.stderr
        assert not ANSI.search(done.stdout + done.stderr)
        assert "\r" not in done.stderr


@pytest.mark.parametrize(
    "words", [["data", "head", "wörter.jsonl"], ["data", "head", "wörter.jsonl", "--json"], ["runs", "list"]]
)
def test_any_encoding_of_the_terminal_will_do(project: Path, words: list[str]) -> None:
    for encoding in ("ascii", "latin-1", "utf-8"):
        ran = run_cli(project, words, encoding)
        assert ran.code == 0
        assert ran.out
    assert "语言" in run_cli(project, ["data", "head", "wörter.jsonl"]).out


def test_an_odd_locale_is_no_traceback(project: Path) -> None:
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONIOENCODING": "ascii",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    done = subprocess.run(
        command(project, "data", "head", "rows.jsonl"),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["ops", "list"], ["plan", "schema"], ["data", "head", "rows.jsonl", "-k", "31"]])
def test_a_reader_that_stops_early_is_no_traceback(project: Path, words: list[str]) -> None:
    line = " ".join([*command(project, *words), "| head -c 1"])
    done = subprocess.run(
        ["bash", "-c", f"{line}; echo ${{PIPESTATUS[0]}} >&2"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr.strip() == "0", done.stderr


def wait_for(condition: object, process: subprocess.Popen[str], seconds: float = 60) -> None:
    """Poll until the condition holds; a process that ends before is a failure."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_ctrl_c_stops_gracefully_with_130_and_the_run_resumes(tmp_path: Path) -> None:
    text = (
        (make_project(tmp_path / "once", count=300) / "plan.yaml")
        .read_text()
        .replace("shard_rows: 20", "shard_rows: 10")
    )
    folders = [make_project(tmp_path / name, text, count=300) for name in ("once", "twice")]
    digest = compiled(folders[0]).digest
    words = ["run", "plan.yaml", "-j", "1", "--approve", digest]
    process = subprocess.Popen(command(folders[1], *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(list(folders[1].glob(".datamill/store/*/*/manifest.json"))) > 5, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "DM-RUN-130" in err
    state = run_cli(folders[1], ["runs", "show", "@last", "--json"]).data
    assert state["status"] == "interrupted"
    assert not (folders[1] / "out" / "clean.jsonl").exists()
    again = run_cli(folders[1], ["run", "plan.yaml", "-j", "1"])
    assert again.code == 0
    assert f"RESUME  {state['id']}" in again.err
    assert run_cli(folders[0], words).code == 0
    assert tree_digest(folders[0] / "out") == tree_digest(folders[1] / "out")
