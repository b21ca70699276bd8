from pathlib import Path

import pyarrow as pa
from support.project import approved_run, compiled, write_rows

from datamill.workflows.join_step import conform, joined_arrow_schema
from datamill.workflows.lookup import RunData
from datamill.workflows.run_record import RunRecord

LEFT = pa.schema([pa.field("_id", pa.string(), nullable=False), pa.field("url", pa.string(), nullable=False)])
RIGHT = pa.schema([pa.field("_id", pa.string(), nullable=False), pa.field("n", pa.int64())])


def test_a_column_that_one_parent_lacks_may_be_null_and_a_shared_one_may_not() -> None:
    schema = joined_arrow_schema([LEFT, RIGHT])
    assert {field.name: field.nullable for field in schema} == {"_id": False, "url": True, "n": True}
    shaped = conform(pa.table({"_id": ["a"], "n": [1]}, schema=RIGHT), schema)
    assert shaped.schema.equals(schema)
    assert shaped.to_pylist() == [{"_id": "a", "url": None, "n": 1}]
    assert joined_arrow_schema([]).names == []


def test_branches_with_different_columns_join_and_a_row_of_both_is_kept_once(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", [{"text": f"row {i}", "url": f"u{i}"} for i in range(6)])
    (tmp_path / "b.csv").write_text("text\nfrom a table\n")
    plan = compiled(tmp_path, """\
version: 1
name: join
inputs: {a: {path: a.jsonl}, b: {path: b.csv}}
steps:
  - {id: low, operator: filter.expr, needs: a, params: {expr: "text < 'row 4'"}}
  - {id: high, operator: filter.expr, needs: a, params: {expr: "text > 'row 1'"}}
  - {id: all, operator: mix.concat, needs: [low, high, b]}
outputs: {o: {from: all, path: out/o.jsonl}}
run: {shard_rows: 2}
""")  # fmt: skip
    assert plan.step("all").schema["url"].nullable
    result = approved_run(tmp_path, plan)
    found = RunData(tmp_path, RunRecord(result.folder))
    rows = [row for table in found.tables("all") for row in table.to_pylist()]
    assert [(row["text"], row["url"], row["domain"]) for row in rows] == [
        ("row 0", "u0", "low"), ("row 1", "u1", "low"), ("row 2", "u2", "low"), ("row 3", "u3", "low"),
        ("row 4", "u4", "high"), ("row 5", "u5", "high"), ("from a table", None, "b"),
    ]  # fmt: skip
    merged = [fate for fate in found.fates("all").to_pylist() if fate["fate"] == "merged"]
    assert [fate["src"] for fate in merged] == ["a.jsonl:3", "a.jsonl:4"]
