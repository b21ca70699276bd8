"""An approved plan with `augment.paraphrase` runs against a scripted endpoint: endpoint, budget, usage, kills."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.agent import KEY
from support.project import compiled, make_project
from support.scripted_server import ScriptedServer, Seen, Step, reply, status

from datamill.errors import DatamillError, ExitCode
from datamill.settings import Settings
from datamill.workflows.approval import approve
from datamill.workflows.estimate import estimate_plan
from datamill.workflows.execute import RunRequest, RunResult, run_plan
from datamill.workflows.llm_steps import budget_of, check_llm, llm_steps
from datamill.workflows.run_record import list_runs

FLOW = """\
version: 1
name: reworded
seed: 3
inputs:
  load: {path: rows.jsonl, options: {max_bad: 0.5}}
steps:
  - {id: size, operator: filter.length, needs: load, params: {columns: [text], min: 12}}
  - {id: say, operator: augment.paraphrase, needs: size, params: {column: text, n: 1}}
outputs:
  clean: {from: say, path: out/clean.jsonl, format: jsonl}
run: {shard_rows: 10}
"""
SETTINGS = '[llm]\nmodel = "m"\nmax_rpm = 1000000\nmax_tpm = 1000000000\nmax_retries = 0\n'
PRICED = SETTINGS + "usd_per_million_input = 100.0\nusd_per_million_output = 100.0\n"


def reworded(seen: Seen) -> Step:
    """The text with more words; its numbers stay."""
    found = re.search(r"<<<DATA \w+\n(.*)\nDATA", seen.body["messages"][1]["content"], re.DOTALL)
    assert found is not None
    return reply({"text": f"{found.group(1)}, in other words"}, usage=(50, 10))


def small(folder: Path, settings: str = SETTINGS) -> Path:
    make_project(folder, FLOW, count=40)
    (folder / "datamill.toml").write_text(settings)
    return folder


def run(folder: Path, **more: Any) -> RunResult:
    plan = compiled(folder)
    approve(folder, plan, "test")
    return run_plan(plan, RunRequest(folder, workers=1, **more))


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(server: ScriptedServer) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)

    return use


def test_without_an_endpoint_nothing_starts(tmp_path: Path) -> None:
    folder = small(tmp_path)
    with pytest.raises(DatamillError) as caught:
        run(folder)
    assert caught.value.code == "DM-LLM-012"
    assert caught.value.exit_code == ExitCode.MISSING_DEPENDENCY
    assert caught.value.issues[0].step == "say"
    assert "OPENAI_BASE_URL" in str(caught.value.issues[0].fix)
    assert list_runs(folder) == []


def test_without_a_model_nothing_starts_unless_the_step_names_one(tmp_path: Path, online: Any) -> None:
    folder = small(tmp_path, "")
    with ScriptedServer(reworded) as server:
        online(server)
        with pytest.raises(DatamillError, match="no model is configured"):
            run(folder)
        named = compiled(folder, FLOW.replace("n: 1}", "n: 1, model: mine}"))
        check_llm(named, folder)
    assert server.seen == []


def test_usage_is_in_the_record_and_the_report(tmp_path: Path, online: Any) -> None:
    folder = small(tmp_path, PRICED)
    with ScriptedServer(reworded) as server:
        online(server)
        done = run(folder, budget_usd=5.0)
        calls = len(server.seen)
    record = list_runs(folder)[0]
    rows = done.steps["size"]["out"]
    used = record.state()["llm"]
    distinct = len({seen.text for seen in server.seen})
    assert used["total"]["requests"] == rows
    assert used["total"]["calls"] == calls == distinct
    assert used["total"]["cached"] == rows - distinct > 0, "equal texts are asked once"
    assert used["total"]["tokens_in"] == 50 * calls
    assert used["total"]["usd"] == pytest.approx(60 * calls * 100 / 1e6)
    assert used["steps"]["say"] == used["total"]
    report = json.loads((record.folder / "report.json").read_text())
    assert report["llm"] == used
    assert "<h2>Language model</h2>" in (record.folder / "report.html").read_text()
    assert done.rows_out == 2 * rows
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert KEY.encode() not in kept


def test_an_expected_cost_above_the_budget_never_starts(tmp_path: Path, online: Any) -> None:
    folder = small(tmp_path, PRICED)
    with ScriptedServer(reworded) as server:
        online(server)
        for allowed in (None, 0.0, 0.05):
            with pytest.raises(DatamillError) as caught:
                run(folder, budget_usd=allowed)
            assert caught.value.code == "DM-LLM-013"
            assert caught.value.exit_code == ExitCode.BUDGET_EXCEEDED
        assert server.seen == []
    assert list_runs(folder) == []


def test_the_estimate_counts_calls_and_tokens_of_every_variant(tmp_path: Path) -> None:
    folder = small(tmp_path)
    one = estimate_plan(compiled(folder), folder).steps[-1]
    three = estimate_plan(compiled(folder, FLOW.replace("n: 1}", "n: 3}")), folder).steps[-1]
    assert one.llm_calls > 0
    assert three.llm_calls == 3 * one.llm_calls
    assert three.llm_tokens[0] == pytest.approx(3 * one.llm_tokens[0], abs=3)
    assert one.llm_tokens[0] > one.llm_tokens[1] > 0
    assert three.rows == pytest.approx(2 * one.rows)


def test_the_budget_is_the_persons_then_the_plans_then_the_settings(tmp_path: Path) -> None:
    folder = small(tmp_path)
    plan = compiled(folder, FLOW.replace("shard_rows: 10", "shard_rows: 10, budget: {llm_usd: 2}"))
    rich = Settings.model_validate({"run": {"budget_usd": 3}})
    assert budget_of(plan, Settings()) == 2.0
    assert budget_of(plan, rich) == 3.0
    assert budget_of(plan, rich, given=0.5) == 0.5
    assert [step.id for step in llm_steps(plan)] == ["say"]


def test_failed_rows_alone_are_asked_again(tmp_path: Path, online: Any) -> None:
    folder = small(tmp_path)
    ill = {"on": True}

    def sometimes(seen: Seen) -> Step:
        return status(500) if ill["on"] and "sentence number 5 " in seen.text else reworded(seen)

    with ScriptedServer(sometimes) as server:
        online(server)
        first = run(folder)
        asked = len(server.seen)
        assert list_runs(folder)[0].state()["llm"]["total"]["failed"] == 1
        ill["on"] = False
        second = run(folder)
        assert len(server.seen) == asked + 1
        assert second.rows_out == first.rows_out + 1
        run(folder)
        assert len(server.seen) == asked + 1


@pytest.mark.slow
def test_killed_in_the_middle_only_missing_calls_are_made(tmp_path: Path, online: Any) -> None:
    """The command is killed when half of the calls are answered; the same command then makes the other half."""
    folder = small(tmp_path)
    calm = small(tmp_path / "calm")
    with ScriptedServer(lambda seen: Step(**{**reworded(seen).__dict__, "delay_s": 0.05})) as server:
        command = line(folder)
        process = subprocess.Popen(command, env=environment(server), stderr=subprocess.PIPE, text=True)
        limit = time.monotonic() + 60
        while len(server.answered) < 12 and time.monotonic() < limit and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        time.sleep(0.2)
        before = {seen.text for seen in server.seen}
        cached = len(list((folder / ".datamill" / "llm_cache").rglob("*.json")))
        assert 0 < cached <= len(before)
        done = subprocess.run(command, env=environment(server), capture_output=True, text=True, check=False, timeout=90)
        assert done.returncode == 0, done.stderr
        everything = {seen.text for seen in server.seen}
        again = len(server.seen) - len(everything)
        assert again <= len(before) - cached, "an answer that was stored was asked for again"
        assert len(everything) > len(before), "the kill came too late to test anything"
        made = len(server.seen)
        online(server)
        run(calm)
        assert len(server.seen) == made + len(everything)
    assert (folder / "out" / "clean.jsonl").read_bytes() == (calm / "out" / "clean.jsonl").read_bytes()
    assert len(list_runs(folder)) == 1
    assert "RESUME" in done.stderr


def line(folder: Path) -> list[str]:
    digest = compiled(folder).digest
    return [
        sys.executable, "-m", "datamill", "--project", str(folder), "run", "plan.yaml", "-j", "1", "--approve", digest,
    ]  # fmt: skip


def environment(server: ScriptedServer) -> Mapping[str, str]:
    return {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": KEY, "OMP_NUM_THREADS": "1"}
