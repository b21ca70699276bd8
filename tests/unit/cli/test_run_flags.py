"""The flags of `datamill run` by real invocations: exit codes, what is on stdout and stderr, what is in the run."""

import json
from pathlib import Path

import pytest
from support.branches import SOUND, WORKFLOW, computed, make_branches
from support.cli import run_cli
from support.project import compiled

from datamill.cli.progress import ProgressLines
from datamill.workflows.approval import approve
from datamill.workflows.execute import RunRequest
from datamill.workflows.run_record import list_runs


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A plan that has been run."""
    folder = make_branches(tmp_path / "sound", SOUND)
    assert run_cli(folder, ["run", "plan.yaml", "-j", "1", "--approve", compiled(folder).short]).code == 0
    return folder


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A plan that is approved and whose step `ratio` will fail."""
    folder = make_branches(tmp_path / "faulty", WORKFLOW)
    approve(folder, compiled(folder), "test")
    return folder


def test_from_recomputes_and_says_what_it_reused(sound: Path) -> None:
    ran = run_cli(sound, ["run", "plan.yaml", "-j", "1", "--from", "exact", "--json"])
    assert ran.code == 0
    assert ran.data["status"] == "done"
    lines = {line.split()[0]: line for line in ran.err.splitlines() if line.startswith("  ")}
    assert [name for name in ("load", "fix", "size", "ratio", "later") if "reused" not in lines[name]] == []
    assert [name for name in ("exact", "both") if "reused" in lines[name]] == []
    assert computed(Path(ran.data["folder"]))["exact"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--from", "exat"], "DM-CLI-003", "did you mean `exact`?"), (["--from", ""], "DM-CLI-003", "there is no step ``"),
        (["--from", "exact", "--fresh"], "DM-CLI-008", "--fresh reuses nothing"),
        (["--from", "both", "--until", "exact"], "DM-CLI-008", "does not depend on `both`"),
        (["--budget", "much"], "DM-CLI-001", "2.00USD"), (["--budget", "-1"], "DM-CLI-001", "2.00USD"),
        (["--budget", "nan"], "DM-CLI-001", "2.00USD"),
    ],
)  # fmt: skip
def test_usage_errors_start_nothing(sound: Path, words: list[str], code: str, said: str) -> None:
    for more in ([], ["-n"]):
        ran = run_cli(sound, ["run", "plan.yaml", *words, *more])
        assert (ran.code, ran.out) == (2, "")
        assert code in ran.err
        assert said in ran.err
    error = run_cli(sound, ["run", "plan.yaml", *words, "--json"]).data["error"]
    assert (error["code"], error["exit"]) == (code, 2)
    assert len(list_runs(sound)) == 1


def test_until_ends_well(sound: Path) -> None:
    ran = run_cli(sound, ["run", "plan.yaml", "-j", "1", "--until", "exact", "--json"])
    assert (ran.code, ran.data["status"], ran.data["exit"], ran.data["outputs"]) == (0, "partial", 0, [])


def test_keep_going_names_every_failed_step_and_exits_1(faulty: Path) -> None:
    ran = run_cli(faulty, ["run", "plan.yaml", "-j", "1", "--keep-going"])
    assert (ran.code, ran.out) == (1, "")
    assert "ratio        failed  DM-OPA-001" in ran.err
    assert "later        not run: needs ratio" in ran.err
    assert "both         not run: needs later" in ran.err
    assert "-> out/good.jsonl" in ran.err
    assert "DM-RUN-002 1 of 7 steps failed: `ratio`; not run for want of them: later, both" in ran.err
    assert "run the same command again" in ran.err
    assert "DONE" not in ran.err
    shown = run_cli(faulty, ["runs", "show", "@last", "--json"])
    assert (shown.data["status"], len(shown.data["error"])) == ("failed", 2)
    assert run_cli(faulty, ["data", "drops", "@last", "--step", "exact"]).code == 0
    assert run_cli(faulty, ["report", "@last"]).code == 0


def test_keep_going_with_json_is_one_object(faulty: Path) -> None:
    ran = run_cli(faulty, ["run", "plan.yaml", "-j", "1", "--keep-going", "--json"])
    error = ran.data["error"]
    assert (ran.code, error["exit"], error["code"]) == (1, 1, "DM-RUN-002")
    assert [(issue["code"], issue.get("step")) for issue in error["issues"]] == [
        ("DM-RUN-002", None),
        ("DM-OPA-001", "ratio"),
    ]
    assert error["issues"][0]["context"]["outputs"] == ["out/good.jsonl", "out/side.jsonl"]


def test_keep_going_streams_failures_as_events(faulty: Path) -> None:
    ran = run_cli(faulty, ["run", "plan.yaml", "-j", "1", "--keep-going", "--json-stream"])
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert [e["step"] for e in events if e["event"] in {"step_failed", "step_skipped"}] == ["ratio", "later", "both"]


def test_without_keep_going_nothing_is_written(faulty: Path) -> None:
    assert run_cli(faulty, ["run", "plan.yaml", "-j", "1"]).code == 1
    assert not (faulty / "out").exists()


def test_a_moving_line_is_wiped_before_a_failure_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from datamill.cli.session import Session

    lines = ProgressLines(Session(tmp_path, color=True))
    lines({"event": "unit_done", "step": "ratio", "rows": 3, "shard": 0, "of": 2})
    lines({"event": "step_failed", "step": "ratio", "code": "DM-OPA-001", "message": "a null"})
    text = capsys.readouterr().err
    assert "\r" + " " * len("  ratio        shard 1/2  3 rows") + "\r  ratio        failed  DM-OPA-001 a null" in text


def test_the_budget_reaches_the_run_and_the_command_that_repeats_it(
    sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datamill.workflows import execute

    seen: list[RunRequest] = []
    real = execute.run_plan
    monkeypatch.setattr(execute, "run_plan", lambda plan, request: (seen.append(request), real(plan, request))[1])
    for words, usd in (
        ([], None),
        (["--budget", "2.50USD"], 2.5),
        (["--budget", "0"], 0.0),
        (["--budget", "3usd"], 3.0),
    ):
        assert run_cli(sound, ["run", "plan.yaml", "-j", "1", *words]).code == 0
        assert seen[-1].budget_usd == usd
    assert [request.command for request in seen[:2]] == [
        "datamill run plan.yaml",
        "datamill run plan.yaml --budget 2.50USD",
    ]
    refused = run_cli(sound, ["run", "plan.yaml", "--set", "seed=9", "--budget", "2USD"])
    assert refused.code == 4
    assert "datamill run plan.yaml --set seed=9 --budget 2USD --approve" in refused.err


class TestOpen:
    @pytest.fixture
    def opened(self, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        pages: list[Path] = []
        monkeypatch.setattr("datamill.cli.browser.open_page", lambda page: (pages.append(page), True)[1])
        return pages

    def test_a_finished_run_is_opened(self, sound: Path, opened: list[Path]) -> None:
        ran = run_cli(sound, ["run", "plan.yaml", "-j", "1", "--open", "--json"])
        assert ran.code == 0
        assert ran.data["opened"] is True
        assert ran.data["report"] == str(opened[0])
        assert opened[0].is_file()
        assert opened[0].parent == list_runs(sound)[-1].folder

    def test_a_run_with_a_failed_gate_is_opened_too(self, sound: Path, opened: list[Path]) -> None:
        text = SOUND.replace("run: {", "checks: [{on: good, metric: rows, min: 999}]\nrun: {")
        (sound / "gate.yaml").write_text(text)
        digest = compiled(sound, text).short
        assert run_cli(sound, ["run", "gate.yaml", "-j", "1", "--open", "--approve", digest]).code == 5
        assert len(opened) == 1

    def test_nothing_is_opened_unasked_or_when_the_run_fails(
        self, sound: Path, faulty: Path, opened: list[Path]
    ) -> None:
        assert run_cli(sound, ["run", "plan.yaml", "-j", "1", "--json"]).data["opened"] is False
        assert run_cli(faulty, ["run", "plan.yaml", "-j", "1", "--open", "--keep-going"]).code == 1
        assert run_cli(sound, ["run", "plan.yaml", "--open", "-n"]).code == 0
        assert opened == []

    def test_off_a_terminal_the_path_is_printed(self, sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("webbrowser.open", lambda _url: pytest.fail("no window off a terminal"))
        ran = run_cli(sound, ["run", "plan.yaml", "-j", "1", "--open"])
        page = list_runs(sound)[-1].folder / "report.html"
        assert (ran.code, ran.out) == (0, "")
        assert f"report: {page}" in ran.err
        again = run_cli(sound, ["report", "@last", "--open"])
        assert (again.code, again.out.strip()) == (0, str(page))
