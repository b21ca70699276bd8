import json
from pathlib import Path

import pytest
from support.project import compiled, write_rows

from datamill.errors import Issue, PlanError
from datamill.operators.declaration import ColumnType, Need
from datamill.workflows.check_columns import check_need, join_schemas

HEAD = "version: 1\nname: columns\ninputs:\n  load: {path: rows.jsonl}\n  chats: {path: chats.jsonl}\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("columns")
    rows = [{"text": f"row {i}", "note": None if i == 2 else "n", "vector": [0.1, 0.2], "count": i} for i in range(6)]
    write_rows(folder / "rows.jsonl", rows)
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]
    write_rows(folder / "chats.jsonl", [{"messages": turns} for _ in range(3)])
    return folder


def errors(folder: Path, body: str, head: str = HEAD) -> list[Issue]:
    with pytest.raises(PlanError) as refused:
        compiled(folder, head + body)
    return [issue for issue in refused.value.issues if issue.severity == "error"]


def test_an_embedding_handed_to_a_text_operator_is_a_plan_error(project: Path) -> None:
    body = "steps:\n  - {id: fix, operator: text.fix_unicode, needs: load, params: {columns: [vector]}}\n"
    (issue,) = errors(project, body)
    assert (issue.code, issue.step, issue.field, issue.line) == ("DM-PLAN-021", "fix", "params.columns", 7)
    assert "list<" in issue.message
    declared = HEAD.replace("rows.jsonl}", "rows.jsonl, schema: {text: 'embedding[384]'}}")
    (issue,) = errors(project, body.replace("vector", "text"), declared)
    assert issue.code == "DM-PLAN-022"
    assert "embedding" in issue.message


def test_a_chat_handed_to_a_text_operator_is_a_plan_error(project: Path) -> None:
    body = "steps:\n  - {id: near, operator: dedup.minhash, needs: chats, params: {column: messages}}\n"
    (issue,) = errors(project, body)
    assert issue.code in {"DM-PLAN-021", "DM-PLAN-022"}


def test_a_nullable_column_needs_a_policy(project: Path) -> None:
    body = "steps:\n  - {{id: size, operator: filter.length, needs: load, params: {{columns: [{0}], unit: chars, min: 1, on_null: {1}}}}}\n"
    (issue,) = errors(project, body.format("note", "error"))
    assert (issue.code, issue.field) == ("DM-PLAN-023", "params.columns")
    assert "on_null: drop" in str(issue.fix)
    for column, policy in (("text", "error"), ("note", "drop"), ("note", "keep")):
        assert compiled(project, HEAD + body.format(column, policy)).steps


def test_a_missing_column_names_the_nearest_and_later_steps_are_still_checked(project: Path) -> None:
    body = """\
steps:
  - {id: fix, operator: text.fix_unicode, needs: load, params: {columns: [txet]}}
  - {id: exact, operator: dedup.exact, needs: fix, params: {columns: [text], normalize: yes}}
  - {id: size, operator: filter.length, needs: load, params: {columns: [cuont], unit: chars, min: 1}}
"""
    found = {(issue.code, issue.step): issue.nearest for issue in errors(project, body)}
    assert found == {
        ("DM-PLAN-020", "fix"): "text",
        ("DM-PLAN-007", "exact"): "normalise",
        ("DM-PLAN-020", "size"): "count",
    }


def test_columns_made_and_renamed_are_followed(project: Path) -> None:
    body = """\
steps:
  - {id: rename, operator: columns.rename, needs: load, params: {mapping: {text: body}}}
  - {id: detect, operator: lang.detect, needs: rename, params: {column: body}}
  - {id: english, operator: filter.lang, needs: detect, params: {allow: [en]}}
"""
    plan = compiled(project, HEAD + body)
    assert "body" in plan.step("english").schema
    assert "text" not in plan.step("english").schema
    (issue,) = errors(project, body.replace("column: body", "column: text"))
    assert (issue.code, issue.step) == ("DM-PLAN-020", "detect")
    found = errors(project, body.replace("needs: detect", "needs: rename"))
    assert {(issue.code, issue.step, issue.field) for issue in found} == {
        ("DM-PLAN-020", "english", "params.column"),
        ("DM-PLAN-020", "english", "params.score_column"),
    }


def test_a_join_of_chats_and_texts_is_a_plan_error(project: Path) -> None:
    body = "steps:\n  - {id: both, operator: mix.concat, needs: [load, chats]}\n"
    (issue,) = errors(project, body)
    assert (issue.code, issue.step, issue.field) == ("DM-PLAN-024", "both", "needs")
    assert "format.chat" in str(issue.fix)


def test_declared_kinds_are_held_against_the_data(project: Path) -> None:
    for declared, code, close in (
        ("{txt: text}", "DM-PLAN-020", "text"), ("{text: txet}", "DM-PLAN-019", "text"), ("chatt", "DM-PLAN-019", "chat"),
    ):  # fmt: skip
        head = HEAD.replace("rows.jsonl}", f"rows.jsonl, schema: {declared}}}")
        (issue,) = errors(project, "", head)
        assert (issue.code, issue.nearest, issue.line) == (code, close, 4)
    ok = compiled(project, HEAD.replace("rows.jsonl}", "rows.jsonl, schema: {note: 'text!', count: number}}"))
    assert ok.step("load").schema["note"] == ColumnType("string", nullable=False, semantic="text")
    assert ok.step("load").schema["count"].semantic == "number"


A, B = ColumnType("string", nullable=False), ColumnType("int64", nullable=False)


@pytest.mark.parametrize(
    ("need", "code"),
    [
        (Need("text", ("string",)), None),
        (Need("text", ("int64",)), "DM-PLAN-021"),
        (Need("text", ("str*",)), None),
        (Need("text", (), ("chat",)), None),
        (Need("tagged", (), ("chat",)), "DM-PLAN-022"),
        (Need("absent"), "DM-PLAN-020"),
        (Need("maybe", nullable=False), "DM-PLAN-023"),
        (Need("text", nullable=False), None),
    ],
)
def test_needs_one_by_one(need: Need, code: str | None) -> None:
    schema = {"text": A, "tagged": ColumnType("string", False, "text"), "maybe": ColumnType("string", True)}
    issue = check_need(need, schema, "s")
    assert (issue.code if issue else None) == code


def test_joined_schemas_are_the_union_with_nulls_where_a_parent_lacks_a_column() -> None:
    schema, issues = join_schemas([("a", {"x": A, "y": B}), ("b", {"x": A, "z": B})], "j")
    assert issues == []
    assert schema == {"x": A, "y": ColumnType("int64", True), "z": ColumnType("int64", True)}
    _, clash = join_schemas([("a", {"x": A}), ("b", {"x": B})], "j")
    assert [issue.code for issue in clash] == ["DM-PLAN-024"]


def test_the_report_is_the_same_object_for_people_and_planner(project: Path) -> None:
    (issue,) = errors(
        project, "steps:\n  - {id: f, operator: text.fix_unicode, needs: load, params: {columns: [txt]}}\n"
    )
    data = json.loads(json.dumps(issue.to_dict()))
    assert data["nearest"] == "text"
    assert data["line"] == 7
    assert "did you mean `text`?" in issue.render()
