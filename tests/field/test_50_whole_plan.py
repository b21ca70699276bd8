"""Case 50 through whole plans: each branch has its own file, and a missing column is said before anything runs."""

from pathlib import Path

import pytest
from support.cases import project_of, rows_after, run_case
from support.project import compiled

from datamill.errors import PlanError

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "50-branch-writes-same-file"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")
WORKFLOW = """\
version: 1
name: routed
inputs: {load: {path: in.jsonl}}
steps:
  - {id: with_gold, operator: filter.expr, needs: load, params: {expr: "golden_answer is not null"}}
  - {id: without_gold, operator: filter.expr, needs: load, params: {expr: "golden_answer is null"}}
  - {id: next, operator: text.fix_unicode, needs: without_gold, params: {columns: [q]}}
  - {id: all, operator: mix.concat, needs: [with_gold, next]}
outputs:
  with_gold: {from: with_gold, path: out/}
  without_gold: {from: next, path: out/}
"""


def test_branches_write_their_own_files_and_their_union_is_the_input(tmp_path: Path) -> None:
    folder = project_of(CASE, tmp_path)
    result, data = run_case(folder, WORKFLOW)
    assert {output.name: output.rows for output in result.outputs} == {"with_gold": 2, "without_gold": 1}
    assert sorted(path.name for path in (folder / "out").glob("*.jsonl")) == ["with_gold.jsonl", "without_gold.jsonl"]
    assert sorted(row["q"] for row in rows_after(data, "all")) == ["1", "2", "3"]


def test_two_outputs_on_one_file_are_a_plan_error(tmp_path: Path) -> None:
    folder = project_of(CASE, tmp_path)
    with pytest.raises(PlanError) as refused:
        compiled(folder, WORKFLOW.replace("out/}", "out/rows.jsonl}"))
    assert [issue.code for issue in refused.value.issues if issue.severity == "error"] == ["DM-PLAN-015"]


def test_a_missing_column_is_a_message_of_the_plan(tmp_path: Path) -> None:
    folder = project_of(CASE, tmp_path)
    with pytest.raises(PlanError) as refused:
        compiled(folder, WORKFLOW.replace("in.jsonl", "in_nogold.jsonl"))
    issues = [issue for issue in refused.value.issues if issue.severity == "error"]
    assert {(issue.code, issue.step) for issue in issues} == {
        ("DM-PLAN-020", "with_gold"),
        ("DM-PLAN-020", "without_gold"),
    }
    assert all("golden_answer" in issue.message for issue in issues)
