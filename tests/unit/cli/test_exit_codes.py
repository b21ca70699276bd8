"""Every exit code by a real invocation; the message names the place and the next command."""

import json
from pathlib import Path

import pytest
from support.cli import run_cli
from support.project import compiled, make_project, write_rows


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_project(tmp_path_factory.mktemp("cli"), count=30)
    assert run_cli(folder, ["run", "plan.yaml", "-j", "1", "--approve", compiled(folder).digest]).code == 0
    return folder


def approved(folder: Path, file: str, *more: str) -> list[str]:
    digest = compiled(folder, (folder / file).read_text()).short
    return ["run", file, "-j", "1", "--approve", digest, *more]


def variant(folder: Path, name: str, old: str, new: str) -> str:
    text = (folder / "plan.yaml").read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))
    return name


def test_0_the_same_command_twice_is_safe(project: Path) -> None:
    ran = run_cli(project, ["run", "plan.yaml", "-j", "1"])
    assert (ran.code, ran.out) == (0, "")
    assert "reused" in ran.err
    assert "DONE" in ran.err
    assert "next: datamill data drops @last" in ran.err


def test_1_a_failed_step_is_recorded_and_resumable(tmp_path: Path) -> None:
    folder = make_project(tmp_path, count=30)
    name = variant(folder, "bad.yaml", "max_bad: 0.5", "max_bad: 0.001")
    ran = run_cli(folder, approved(folder, name))
    assert ran.code == 1
    assert "DM-READ-004" in ran.err
    shown = run_cli(folder, ["runs", "show", "@last", "--json"])
    assert (shown.code, shown.data["status"], shown.data["error"][0]["code"]) == (0, "failed", "DM-READ-004")


@pytest.mark.parametrize(
    "words",
    [
        ["rnu"], ["run"], ["run", "absent.yaml"], ["run", "plan.yaml", "--frehs"], ["run", "plan.yaml", "-j", "0"],
        ["run", "plan.yaml", "--until", "sise"], ["run", "plan.yaml", "--set", "nothing"], ["runs", "show", "@7"],
        ["runs", "show", "nobody"], ["data", "head", "@last", "--step", "sise"], ["plan", "graph", "plan.yaml", "--format", "gif"],
        ["ops", "list", "--family", "dedub"], ["ops", "new", "NotAnId"], ["models", "pull", "tinny"], ["config", "set", "run.worker", "3"],
        ["data", "why", "0" * 32], ["ask", "x", "-i", "absent.jsonl"], ["ask"], ["ask", "x", "--budget", "much"], ["data", "head", "@last", "-k", "0"],
    ],
)  # fmt: skip
def test_2_usage(project: Path, words: list[str]) -> None:
    ran = run_cli(project, words)
    assert ran.code == 2
    assert ran.out == ""
    assert "DM-" in ran.err
    assert "Traceback" not in ran.err


def test_2_bare_datamill_shows_help_with_examples() -> None:
    ran = run_cli(None, [])
    assert ran.code == 2
    assert "Examples:" in ran.out + ran.err


def test_3_an_invalid_plan_shows_all_its_problems(project: Path) -> None:
    text = (project / "plan.yaml").read_text().replace("min: 12", "mn: 12").replace("dedup.exact", "dedup.exct")
    (project / "invalid.yaml").write_text(text)
    for words in (["run", "invalid.yaml"], ["plan", "show", "invalid.yaml"], ["plan", "estimate", "invalid.yaml"]):
        ran = run_cli(project, words)
        assert ran.code == 3
        assert "did you mean `min`?" in ran.err
        assert "did you mean `dedup.exact`?" in ran.err
        assert "invalid.yaml:8:" in ran.err
    check = run_cli(project, ["plan", "check", "invalid.yaml"])
    assert check.code == 3
    assert "DM-PLAN-007" in check.out
    (project / "datamill.toml").write_text("[run]\nworkers = 0\n")
    bad = run_cli(project, ["config", "show"])
    (project / "datamill.toml").unlink()
    assert (bad.code, "DM-CFG-002" in bad.err) == (3, True)


def test_4_approval(tmp_path: Path) -> None:
    folder = make_project(tmp_path, count=30)
    ran = run_cli(folder, ["run", "plan.yaml"])
    digest = compiled(folder).short
    assert ran.code == 4
    assert f"datamill run plan.yaml --approve {digest}" in ran.err
    for wrong in ("000000000000", digest[:5], ""):
        refused = run_cli(folder, ["run", "plan.yaml", "--approve", wrong])
        assert (refused.code, "DM-AGENT-003" in refused.err) == (4, True)
    assert not (folder / "runs").exists()
    assert run_cli(folder, ["run", "plan.yaml", "--approve", digest, "--set", "seed=9"]).code == 4
    assert run_cli(folder, ["run", "plan.yaml", "-j", "1", "--approve", digest]).code == 0
    changed = run_cli(folder, ["run", "plan.yaml", "--set", "steps.size.params.min=3"])
    assert changed.code == 4
    assert "~ size.min  12 -> 3" in changed.err
    rm = run_cli(folder, ["runs", "rm", "@last"])
    assert (rm.code, "--yes" in rm.err) == (4, True)
    (folder / "out" / "clean.jsonl").write_text("mine\n")
    foreign = run_cli(folder, ["run", "plan.yaml"])
    assert (foreign.code, "DM-PATH-006" in foreign.err) == (4, True)
    assert (folder / "out" / "clean.jsonl").read_text() == "mine\n"


def test_5_a_gate(project: Path) -> None:
    name = variant(project, "gate.yaml", "run: {", "checks: [{on: clean, metric: rows, min: 999}]\nrun: {")
    ran = run_cli(project, approved(project, name))
    assert ran.code == 5
    assert "gate failed: clean rows" in ran.err


def test_6_a_missing_back_end(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(project))
    ran = run_cli(project, ["run", "plan.yaml", "-e", "spark"])
    assert (ran.code, "DM-ENGINE-021" in ran.err, "install a Java runtime" in ran.err) == (6, True, True)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    ran = run_cli(project, ["run", "plan.yaml", "-e", "ray"])
    assert (ran.code, "DM-ENGINE-011" in ran.err, "check RAY_ADDRESS" in ran.err) == (6, True, True)
    ran = run_cli(project, ["run", "plan.yaml", "-e", "sparc"])
    assert (ran.code, "DM-ENV-002" in ran.err, "spark" in ran.err) == (6, True, True)


def test_7_a_budget(project: Path) -> None:
    name = variant(project, "budget.yaml", "run: {", "run: {budget: {wall_minutes: 0.0000001}, ")
    ran = run_cli(project, approved(project, name, "--fresh"))
    assert ran.code == 7


def test_a_file_in_the_way_is_a_message_and_not_a_traceback(tmp_path: Path) -> None:
    folder = make_project(tmp_path, count=30)
    digest = compiled(folder).digest
    (folder / "runs").write_text("not a folder")
    ran = run_cli(folder, ["run", "plan.yaml", "-j", "1", "--approve", digest])
    assert ran.code == 1
    assert "DM-CLI-007" in ran.err
    assert "Traceback" not in ran.err
    assert "datamill doctor" in ran.err


def test_a_project_that_cannot_be_written_is_a_message_and_not_a_traceback(tmp_path: Path) -> None:
    make_project(tmp_path, count=3)
    for words in (["config", "set", "run.workers", "2"], ["ops", "new", "filter.new_one"], ["models", "list"]):
        ran = run_cli(Path("/proc/self/fd"), words)
        assert "Traceback" not in ran.err
        assert ran.code in {0, 1}
    assert run_cli(Path("/proc/self/fd"), ["config", "set", "run.workers", "2"]).code == 1
    missing = run_cli(tmp_path / "absent", ["runs", "list"])
    assert (missing.code, "DM-CLI-002" in missing.err) == (2, True)


def test_a_damaged_input_between_plan_and_run_is_found(tmp_path: Path) -> None:
    folder = make_project(tmp_path, count=30)
    digest = compiled(folder).digest
    write_rows(folder / "rows.jsonl", [{"text": "other rows altogether", "answer": "y"}])
    ran = run_cli(folder, ["run", "plan.yaml", "--approve", digest])
    assert (ran.code, "DM-AGENT-003" in ran.err) == (4, True)


def test_errors_are_data_with_json(project: Path) -> None:
    for words, code in (
        (["run", "absent.yaml"], 2),
        (["run", "invalid.yaml"], 3),
        (["rnu"], 2),
        (["run", "plan.yaml", "-e", "nowhere"], 6),
    ):
        ran = run_cli(project, [*words, "--json"])
        assert ran.code == code
        error = ran.data["error"]
        assert error["exit"] == code
        assert error["code"] == error["issues"][0]["code"]
        assert json.dumps(error["code"])[1:-1] in ran.err
