"""Case 63: a workflow saved months ago; an operator was renamed, a parameter too, and the input has another column."""

import json
import shutil
from pathlib import Path

import pytest

from datamill.errors import DatamillError, Issue, PlanError
from datamill.workflows.approval import approve, require
from datamill.workflows.compile import CompileOptions, compile_file
from datamill.workflows.yaml_file import dump, load

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "63-saved-workflow-opened-later"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in CASE.iterdir():
        shutil.copy(path, tmp_path / path.name)
    return tmp_path


def findings(folder: Path) -> list[Issue]:
    with pytest.raises(PlanError) as refused:
        compile_file(folder / "workflow.yaml", CompileOptions(folder))
    return list(refused.value.issues)


def test_opening_shows_everything_that_changed_meaning_with_lines(folder: Path) -> None:
    found = findings(folder)
    renamed, parameter, column = (
        next(issue for issue in found if issue.code == code) for code in ("DM-MIG-002", "DM-MIG-003", "DM-PLAN-020")
    )
    assert (renamed.line, renamed.severity) == (6, "warning")
    assert "`lang_filter` is now called `filter.lang`" in renamed.message
    assert parameter.line == 8
    assert "`lang` is unknown" in parameter.message
    assert "`body`" in column.message
    assert "text" in column.message
    assert column.severity == "error"


def test_written_values_win_and_the_migrated_plan_needs_its_own_approval(folder: Path) -> None:
    text = (folder / "workflow.yaml").read_text().replace("column: body", "column: text")
    step = "  - op: lang.detect\n    params: {column: text, lang_column: text_lang}\n"
    text = text.replace("  - op: lang_filter", step + "  - op: lang_filter").replace(
        "column: text, lang: en", "column: text_lang, lang: en"
    )
    (folder / "workflow.yaml").write_text(text.replace("min_score: 0.65", "min_score: 0.11"))
    plan = compile_file(folder / "workflow.yaml", CompileOptions(folder))
    assert plan.step("filter_lang").params["min_score"] == 0.11
    assert plan.step("filter_lang").params["allow"] == ["en"]
    assert {note.code for note in plan.notes} >= {"DM-MIG-002", "DM-MIG-003"}
    today = json.dumps(plan.to_dict(), default=str)
    assert '"on_null": "drop"' in today, "defaults are part of what is approved"
    with pytest.raises(DatamillError):
        require(folder, plan, "datamill run workflow.yaml")
    approve(folder, plan, "test")
    assert require(folder, plan, "x").digest == plan.digest


def test_load_and_save_give_the_same_file(folder: Path) -> None:
    path = folder / "workflow.yaml"
    document = load(path)
    assert load(path).data == document.data
    written = dump(document.tree)
    path.write_text(written)
    assert dump(load(path).tree) == written
    original = (CASE / "workflow.yaml").read_text()
    assert [line.strip() for line in written.splitlines()] == [line.strip() for line in original.splitlines()]


def test_an_unknown_version_is_refused(folder: Path) -> None:
    path = folder / "workflow.yaml"
    for line in ("format_version: 7", "version: 2"):
        path.write_text(path.read_text().replace("format_version: 0", line))
        assert "DM-MIG-001" in [issue.code for issue in findings(folder)]
        path.write_text((CASE / "workflow.yaml").read_text())
