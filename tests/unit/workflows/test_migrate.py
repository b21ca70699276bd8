from pathlib import Path

import pytest
from support.project import compiled, make_project

from datamill.errors import PlanError

OLD = """\
# saved long ago
format_version: 0
name: old
steps:
  - op: load
    params: {path: rows.jsonl, max_bad: 0.5}
  - op: exact_dedup
    params: {column: text}
  - op: length_filter
    params: {columns: [text], unit: chars, min: 6}
  - op: export
    params: {path: out/old.jsonl}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("migrate"), count=20)


def test_version_0_compiles_and_says_what_it_renamed(project: Path) -> None:
    plan = compiled(project, OLD)
    assert [(step.id, step.operator) for step in plan.steps] == [
        ("load", "read.jsonl"), ("dedup_exact", "dedup.exact"), ("filter_length", "filter.length"),
    ]  # fmt: skip
    assert plan.step("dedup_exact").params["columns"] == ["text"]
    assert plan.outputs["export"].path == "out/old.jsonl"
    notes = {(note.code, note.line) for note in plan.notes}
    assert {("DM-MIG-002", 7), ("DM-MIG-003", 8), ("DM-MIG-002", 9)} <= notes
    assert plan.name == "old"
    assert "# saved long ago" in plan.yaml, "the file itself is not rewritten behind anybody's back"


def test_the_migrated_plan_is_that_of_the_same_workflow_in_version_1(project: Path) -> None:
    new = """\
version: 1
name: new
inputs: {load: {path: rows.jsonl, options: {max_bad: 0.5}}}
steps:
  - {id: dedup_exact, operator: dedup.exact, needs: load, params: {columns: [text]}}
  - {id: filter_length, operator: filter.length, needs: dedup_exact, params: {columns: [text], unit: chars, min: 6}}
outputs: {export: {from: filter_length, path: out/old.jsonl}}
"""
    assert compiled(project, OLD).digest == compiled(project, new).digest


def test_overrides_reach_migrated_steps_and_are_saved_in_version_1(project: Path) -> None:
    plan = compiled(project, OLD, overrides={"steps.filter_length.params.min": 9})
    assert plan.step("filter_length").params["min"] == 9
    assert "version: 1" in plan.yaml
    assert compiled(project, plan.yaml).digest == plan.digest


@pytest.mark.parametrize("line", ["format_version: 1", "version: 9", "version: one"])
def test_versions_nobody_knows_are_refused(project: Path, line: str) -> None:
    with pytest.raises(PlanError) as refused:
        compiled(project, OLD.replace("format_version: 0", line))
    issue = next(issue for issue in refused.value.issues if issue.code == "DM-MIG-001")
    assert issue.line == 2
    assert "upgrade" in str(issue.fix)
