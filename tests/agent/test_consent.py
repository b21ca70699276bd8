"""What `--approve` never covers: foreign files, paths outside the project, a budget, a plan nobody has seen."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.agent import ASKED, KEY, LONGER, plan_reply, project
from support.scripted_server import ScriptedServer, Step, in_order, reply, status

from datamill.cli.app import invoke
from datamill.workflows.run_record import list_runs

PRICED = '[llm]\nmodel = "m"\nmax_retries = 0\nusd_per_million_input = 500.0\nusd_per_million_output = 500.0\n'
WISH = "paraphrase the text column of rows.jsonl"


def ask(folder: Path, *words: str) -> int:
    return invoke(["--project", str(folder), "ask", *words])


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Point the process at a scripted server."""

    def use(server: ScriptedServer) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)

    return use


def test_foreign_output_files_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path)
    mine = folder / "out" / "rows.jsonl"
    mine.parent.mkdir()
    mine.write_text("mine\n")
    assert ask(folder, ASKED, "-i", "rows.jsonl", "--approve=") == 4
    assert "DM-PATH-006" in capsys.readouterr().err
    assert mine.read_text() == "mine\n"
    assert ask(folder, "-c", "--overwrite") == 0
    assert mine.read_text() != "mine\n"


def test_a_plan_file_that_a_person_wrote_or_changed_stays(tmp_path: Path) -> None:
    folder = project(tmp_path)
    mine = folder / "out" / "plan.yaml"
    mine.parent.mkdir()
    mine.write_text("# mine\n")
    assert ask(folder, ASKED, "-i", "rows.jsonl", "--plan-only") == 0
    assert mine.read_text() == "# mine\n"
    second = mine.with_name("plan-2.yaml")
    assert "dedup.exact" in second.read_text()
    assert ask(folder, f"{ASKED}, {LONGER}", "-i", "rows.jsonl", "--plan-only") == 0
    assert "filter.length" in second.read_text(), "a file datamill wrote may be replaced by its newer version"
    second.write_text(second.read_text() + "# changed by hand\n")
    assert ask(folder, ASKED, "-i", "rows.jsonl", "--plan-only") == 0
    assert second.read_text().endswith("# changed by hand\n")
    assert mine.with_name("plan-3.yaml").is_file()


@pytest.mark.parametrize("out", ["../elsewhere", "/tmp/elsewhere"])
def test_outputs_outside_the_project_are_refused(out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path / "project")
    assert ask(folder, ASKED, "-i", "rows.jsonl", "-o", out, "--approve=") in {3, 4}
    assert "DM-PATH-002" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()
    assert not list_runs(folder)


def test_a_cost_above_the_budget_is_refused_whoever_approves(
    tmp_path: Path, endpoint: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, count=120, settings=PRICED)
    with ScriptedServer(in_order([reply({"text": "x"})])) as server:
        endpoint(server)
        for budget in ((), ("--budget", "0.10USD")):
            code = ask(folder, WISH, "-i", "rows.jsonl", "-m", "rules", *budget, "--approve=")
            said = capsys.readouterr().err
            assert code == 7, said
            assert "DM-LLM-013" in said
        assert server.seen == []
    assert list_runs(folder) == []
    saved = (folder / "out" / "plan.yaml").read_text()
    assert "llm_usd: 0.1" in saved, "the budget the person gave is part of the plan"


def test_a_budget_must_be_money(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("much", "-1", "2 EUR", "nan"):
        assert ask(project(tmp_path), ASKED, "-i", "rows.jsonl", "--budget", text) == 2, text
        assert "--budget" in capsys.readouterr().err


def test_bare_approve_does_not_cover_a_plan_the_planner_did_not_mean(
    tmp_path: Path, endpoint: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The nearest valid plan, and the old plan after a failed change, need a look or their digest."""
    folder = project(tmp_path, settings="[llm]\nmax_retries = 0\n")
    wrong = plan_reply()
    wrong["workflow"]["steps"][0]["params"]["shine"] = 1
    with ScriptedServer(lambda _seen: reply(wrong)) as server:
        endpoint(server)
        assert ask(folder, ASKED, "-i", "rows.jsonl", "-m", "m", "--approve=") == 4
    said = capsys.readouterr().err
    assert "DM-AGENT-024" in said
    assert "DM-AGENT-006" in said
    assert list_runs(folder) == []


def test_bare_approve_does_not_cover_a_change_that_failed(
    tmp_path: Path, endpoint: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, settings="[llm]\nmax_retries = 0\n")
    steps: list[Step] = [reply(plan_reply()), status(500)]
    with ScriptedServer(in_order(steps)) as server:
        endpoint(server)
        assert ask(folder, ASKED, "-i", "rows.jsonl", "-m", "m", "--plan-only") == 0
        assert ask(folder, "-c", LONGER, "--approve=") == 4
    assert "the plan is as it was" in capsys.readouterr().err
    assert list_runs(folder) == []


def test_a_failing_endpoint_ends_the_command_with_its_own_code(
    tmp_path: Path, endpoint: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, settings="[llm]\nmax_retries = 0\n")
    with ScriptedServer(in_order([status(401)])) as server:
        endpoint(server)
        assert ask(folder, ASKED, "-i", "rows.jsonl", "-m", "m", "--approve=") == 1
        said = capsys.readouterr().err
        assert "DM-LLM-002" in said
        assert "-m rules" in said
        assert ask(folder, "-c", "-m", "rules", "--approve=") == 0
    assert len(list_runs(folder)) == 1


def chat(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], *words: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return invoke(["--project", str(folder), *words, "chat", "-i", "rows.jsonl", "-m", "rules"])


def test_chat_off_a_terminal_reads_lines_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    lines = [
        "/plan", ASKED, "/why exact", "/sample exact", "/estimate", "/ops duplicates", LONGER, "/diff", "/undo", "/undo",
        "/save kept.yaml", "/cost", "/help", "/approve", "/runs",
    ]  # fmt: skip
    assert chat(folder, monkeypatch, lines) == 0
    captured = capsys.readouterr()
    said = captured.err
    assert captured.out == ""
    assert "you>" not in said
    assert "\x1b" not in said
    expected = [
        "nothing was asked yet",  # /plan
        "dedup.exact: Remove rows",  # /why
        "of 120 sampled rows",  # /sample
        "in all",  # /estimate
        "dedup.minhash  Remove near-duplicate",  # /ops
        "+ length (filter.length)",  # the change
        "- length (filter.length)",  # /undo
        "there is no version before this one",  # /undo again
        "saved kept.yaml",
        "planning  0 calls",
        "/quit",
        "DONE  121 ->",
        "-exact-rows-",
    ]
    position = 0
    for words in expected:
        found = said.find(words, position)
        assert found >= 0, f"`{words}` does not come after `{said[max(0, position - 80) : position]}`"
        position = found
    assert "dedup.exact" in (folder / "kept.yaml").read_text()
    assert "filter.length" not in (folder / "kept.yaml").read_text()
    assert len(list_runs(folder)) == 1


def test_chat_mistakes_are_told_and_the_talk_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    (folder / "mine.yaml").write_text("mine\n")
    (folder / "bad.yaml").write_text("version: 1\nname: x\n")
    lines = [
        ASKED, "/aprove", "/why exakt", "/edit", "/edit bad.yaml", "/edit ../x.yaml", "/save", "/save mine.yaml",
        "/save ../out.yaml", "/approve 000000000000", "/reject no more", "/approve", "/quit", "never read",
    ]  # fmt: skip
    chat(folder, monkeypatch, lines)
    said = capsys.readouterr().err
    for words in (
        "did you mean `/approve`?", "did you mean `exact`?", "/edit FILE", "your edit does not compile", "DM-PATH-001",
        "/save takes a file name", "`mine.yaml` exists", "DM-PATH-002", "000000000000 is not this plan",
        "there is no plan under review (the thread is at `rejected`)",
    ):  # fmt: skip
        assert words in said, words
    assert "never read" not in said
    assert (folder / "mine.yaml").read_text() == "mine\n"
    assert list_runs(folder) == []


def test_chat_edit_from_a_file_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    chat(folder, monkeypatch, [ASKED, "/save v.yaml"])
    changed = (folder / "v.yaml").read_text().replace("name: exact-rows", "name: edited")
    (folder / "v.yaml").write_text(changed.replace("seed: 17", "seed: 99"))
    capsys.readouterr()
    assert chat(folder, monkeypatch, [ASKED, "/edit v.yaml", "/approve"], "--json") == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert data["status"] == "done"
    assert list_runs(folder)[-1].state()["name"] == "edited"
    assert "~ seed  17 -> 99" in captured.err


def test_chat_goes_on_with_the_newest_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    chat(folder, monkeypatch, [ASKED])
    assert "left open; go on with: datamill chat --thread t-" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.StringIO("/approve\n"))
    assert invoke(["--project", str(folder), "chat", "-c"]) == 0
    assert "DONE" in capsys.readouterr().err
