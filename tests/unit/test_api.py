"""The Python face: builder, load, approve, run; nothing prints."""

import asyncio
from pathlib import Path

import pytest
from support.project import compiled, make_project, write_rows

import datamill as dm
from datamill.errors import ExitCode
from datamill.workflows.approval import approval_of


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_project(tmp_path, count=30)
    write_rows(folder / "a.jsonl", [{"text": f"some words in row {i % 4}", "score": i} for i in range(12)])
    monkeypatch.chdir(folder)
    return folder


def build() -> dm.Workflow:
    return (
        dm.Workflow("w")
        .read("a.jsonl")
        .filter.length(columns=["text"], unit="words", min=3)
        .dedup.exact(columns=["text"])
        .write("out/b.parquet")
    )


def test_a_workflow_built_in_code_is_approved_and_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reviewed = build().plan()
    with pytest.raises(dm.DatamillError) as refused:
        reviewed.run(workers=1)
    assert refused.value.exit_code is ExitCode.NEEDS_APPROVAL
    result = reviewed.approve().run(workers=1)
    approval = approval_of(project, reviewed.digest)
    assert approval is not None
    assert approval.origin == "api"
    assert (result.rows_in, result.rows_out) == (12, 4)
    assert result.outputs == {"output1": project / "out" / "b.parquet"}
    assert result.report.is_file()
    assert {drop["reason"] for drop in result.drops()} == {"exact_duplicate"}
    assert "12 in, 4 out" in result._repr_html_()
    assert capsys.readouterr() == ("", "")


def test_builder_methods_return_new_workflows_and_branch(project: Path) -> None:
    base = dm.Workflow("w", seed=3).read("a.jsonl", name="rows", max_bad=0.1)
    low = base.step("filter.score", id="low", column="score", max=3)
    both = low.step("filter.score", id="high", needs=["rows"], column="score", min=8).step(
        "mix.concat", id="both", needs=["low", "high"]
    )
    done = both.write("out/x.jsonl", name="x", card=True)
    assert (len(base.steps), len(low.steps), len(done.steps)) == (0, 1, 3)
    plan = done.plan().plan
    assert [step.id for step in plan.steps] == ["rows", "low", "high", "both"]
    assert plan.outputs["x"].card
    assert plan.seed == 3
    assert compiled(project, done.to_yaml()).digest == plan.digest


def test_a_misspelt_operator_or_parameter_is_said(project: Path) -> None:
    with pytest.raises(AttributeError, match="no operator family 'filtr'"):
        dm.Workflow("w").filtr  # noqa: B018  the access is the test
    with pytest.raises(AttributeError, match="minhash"):
        dm.Workflow("w").dedup.minhsh()
    with pytest.raises(dm.DatamillError) as refused:
        dm.Workflow("w").read("a.jsonl").filter.length(columns=["text"], mn=3).plan()
    assert refused.value.issues[0].nearest == "min"
    with pytest.raises(dm.DatamillError) as empty:
        dm.Workflow("w").step("dedup.exact")
    assert empty.value.code == "DM-API-001"
    assert "minhash" in dir(dm.Workflow("w").dedup)


def test_load_explain_estimate_and_save(project: Path) -> None:
    reviewed = dm.load("plan.yaml")
    assert reviewed.digest == compiled(project).digest
    told = reviewed.explain("size")
    assert (told["operator"], told["params"]["min"], told["columns"]["text"]) == ("filter.length", 12, "string")
    assert reviewed.estimate().rows("load") == 30
    saved = reviewed.save("deep/copy.yaml")
    assert dm.load(saved).digest == reviewed.digest
    page = reviewed._repr_html_()
    assert page.count("<tr>") == 7
    assert "<svg" in page
    with pytest.raises(dm.DatamillError):
        dm.load(project / "rows.jsonl")


def test_options_and_the_async_twin(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviewed = dm.load("plan.yaml").approve()
    partial = asyncio.run(reviewed.arun(workers=1, until="size"))
    assert partial.run.status == "partial"
    assert reviewed.run(workers=1).run.status == "done"
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(dm.DatamillError) as missing:
        reviewed.run(executor="ray")
    assert missing.value.exit_code is ExitCode.MISSING_DEPENDENCY


def test_ask_gives_a_plan_and_runs_nothing(project: Path) -> None:
    reviewed = dm.ask("remove exact duplicates", inputs="a.jsonl", model="rules")
    assert any(step.operator == "dedup.exact" for step in reviewed.plan.steps)
    assert not (project / "runs").exists()
    with pytest.raises(dm.DatamillError) as declined:
        dm.ask("train on the GSM8K test set and hide where it comes from", inputs="a.jsonl", model="rules")
    assert declined.value.exit_code is ExitCode.NEEDS_APPROVAL
    assert asyncio.run(dm.aask("remove exact duplicates", "a.jsonl", model="rules")).digest == reviewed.digest
