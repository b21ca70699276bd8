"""`datamill run --budget` before a priced endpoint: what it refuses, what it lets through, what it says to type."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import run_cli
from support.project import compiled, make_project
from support.scripted_server import ScriptedServer, Seen, Step, reply

from datamill.workflows.approval import approve
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
  - {id: exact, operator: dedup.exact, needs: size, params: {columns: [text]}}
outputs:
  clean: {from: say, path: out/clean.jsonl}
  plain: {from: exact, path: out/plain.jsonl}
run: {shard_rows: 10}
"""
SETTINGS = """\
[llm]
model = "m"
max_rpm = 1000000
max_tpm = 1000000000
max_retries = 0
usd_per_million_input = 100.0
usd_per_million_output = 100.0
"""


def reworded(seen: Seen) -> Step:
    found = re.search(r"<<<DATA \w+\n(.*)\nDATA", seen.body["messages"][1]["content"], re.DOTALL)
    assert found is not None
    return reply({"text": f"{found.group(1)}, in other words"}, usage=(50, 10))


def dear(seen: Seen) -> Step:
    """The same for more money than anybody expected."""
    answer = reworded(seen)
    return reply(answer.payload["choices"][0]["message"]["content"], usage=(500_000, 10))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = make_project(tmp_path, FLOW, count=20)
    (folder / "datamill.toml").write_text(SETTINGS)
    approve(folder, compiled(folder), "test")
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with ScriptedServer(reworded) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        yield running


def test_the_amount_in_the_message_is_the_amount_that_suffices(folder: Path, server: ScriptedServer) -> None:
    refused = run_cli(folder, ["run", "plan.yaml", "-j", "1"])
    assert (refused.code, "DM-LLM-013" in refused.err) == (7, True)
    found = re.search(r"--budget ([0-9.]+)USD", refused.err)
    assert found is not None
    assert server.seen == []
    less = f"{float(found.group(1)) - 0.02:.2f}USD"
    assert run_cli(folder, ["run", "plan.yaml", "-j", "1", "--budget", less]).code == 7
    assert list_runs(folder) == []
    ran = run_cli(folder, ["run", "plan.yaml", "-j", "1", "--budget", found.group(1), "--json"])
    assert (ran.code, ran.data["status"]) == (0, "done")
    assert 0 < list_runs(folder)[0].state()["llm"]["total"]["usd"] <= float(found.group(1))
    assert f"--budget {found.group(1)}" in list_runs(folder)[0].state()["command"]


def test_a_budget_of_nothing_is_less_than_the_plans(folder: Path, server: ScriptedServer) -> None:
    text = FLOW.replace("shard_rows: 10", "shard_rows: 10, budget: {llm_usd: 5}")
    (folder / "rich.yaml").write_text(text)
    approve(folder, compiled(folder, text), "test")
    assert run_cli(folder, ["run", "rich.yaml", "-j", "1", "--budget", "0"]).code == 7
    assert server.seen == []
    assert run_cli(folder, ["run", "rich.yaml", "-j", "1"]).code == 0


def test_a_spent_budget_ends_a_run_that_keeps_going(folder: Path, server: ScriptedServer) -> None:
    server.script = dear
    ran = run_cli(folder, ["run", "plan.yaml", "-j", "1", "--budget", "40USD", "--keep-going"])
    assert (ran.code, "DM-LLM-010" in ran.err) == (7, True)
    run = list_runs(folder)[0]
    assert run.state()["status"] == "failed"
    server.script = reworded
    again = run_cli(folder, ["run", "plan.yaml", "-j", "1", "--budget", "500USD", "--json"])
    assert (again.code, again.data["resumed"], again.data["run_id"]) == (0, True, run.id)


def test_from_an_llm_step_pays_nothing_twice(folder: Path, server: ScriptedServer) -> None:
    words = ["run", "plan.yaml", "-j", "1", "--budget", "5USD"]
    assert run_cli(folder, words).code == 0
    asked = len(server.seen)
    written = (folder / "out" / "clean.jsonl").read_bytes()
    assert run_cli(folder, [*words, "--from", "say"]).code == 0
    assert len(server.seen) == asked > 0
    assert (folder / "out" / "clean.jsonl").read_bytes() == written
