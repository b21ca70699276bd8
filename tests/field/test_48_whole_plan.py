"""Case 48 through whole plans: same rows, types and bytes for any number of shards, some of them empty."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.cases import project_of, rows_after, run_case

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "48-result-depends-on-partitions"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")
WORKFLOW = """\
version: 1
name: partitions
inputs: {load: {path: INPUT}}
steps:
  - {id: exact, operator: dedup.exact, needs: load, params: {columns: [text]}}
  - {id: size, operator: filter.length, needs: exact, params: {columns: [text], unit: chars, min: 5}}
outputs: {kept: {from: size, path: out/kept.parquet, format: parquet}}
run: {shard_rows: SHARD}
"""


def test_the_result_is_a_function_of_data_and_plan(tmp_path: Path) -> None:
    written, types = set(), set()
    for shards, workers in ((1, 1), (2, 2), (7, 1)):
        folder = project_of(CASE, tmp_path / f"{shards}")
        text = WORKFLOW.replace("INPUT", "in.jsonl").replace("SHARD", str(-(-7 // shards)))
        result, data = run_case(folder, text, workers)
        assert [row["id"] for row in rows_after(data, "size")] == [1, 4, 6]
        written.add((folder / result.outputs[0].path).read_bytes())
        types.add(str(pq.read_schema(folder / result.outputs[0].path)))
    assert len(written) == len(types) == 1


def test_fifty_files_of_which_most_are_empty(tmp_path: Path) -> None:
    folder = project_of(CASE, tmp_path)
    lines = (CASE / "in.jsonl").read_text().splitlines()
    (folder / "parts").mkdir()
    for number in range(50):
        own = [line for index, line in enumerate(lines) if index * 7 == number]
        (folder / "parts" / f"{number:02d}.jsonl").write_text("".join(line + "\n" for line in own))
    _, data = run_case(folder, WORKFLOW.replace("INPUT", "parts/*.jsonl").replace("SHARD", "5"))
    assert [row["id"] for row in rows_after(data, "size")] == [1, 4, 6]
