"""Case 07, the export half: what was read with a broken half pair can be written in every format."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamill.services.reading.reader import infer_schema, plan_chunks, read_chunk
from datamill.services.reading.source import SourceSpec
from datamill.services.writing import write_rows

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "07-lone-surrogates-and-emoji"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(path: Path, **options: Any) -> tuple[pa.Table, pa.Table]:
    spec = SourceSpec("in", path.name, root=path.parent, max_bad=1.0, **options)
    schema, _ = infer_schema(spec)
    batches = [batch for chunk in plan_chunks(spec) for batch in read_chunk(spec, chunk, schema)]
    rows = pa.concat_tables([batch.rows for batch in batches])
    return rows, pa.concat_tables([batch.fates for batch in batches])


def test_four_rows_in_and_out_of_every_format(tmp_path: Path) -> None:
    rows, fates = read(CASE / "in.jsonl")
    assert fates["fate"].to_pylist() == ["noted"]
    data = rows.drop_columns(["_id", "_ord", "_src"])
    texts = ["😀", "broken \ufffd end", "👩\u200d👩\u200d👧\u200d👦🇧🇷", "ok"]
    assert data["text"].to_pylist() == texts
    jsonl = write_rows([data], tmp_path / "out.jsonl", "jsonl")
    lines = jsonl.path.read_bytes().split(b"\n")[:-1]
    assert [json.loads(line)["text"] for line in lines] == texts
    assert "😀".encode() in lines[0]
    parquet = write_rows([data], tmp_path / "out.parquet", "parquet")
    assert pq.read_table(parquet.path)["text"].to_pylist() == texts
    assert write_rows([data], tmp_path / "out.csv", "csv").rows == jsonl.rows == parquet.rows == 4


def test_writing_what_was_written_changes_nothing(tmp_path: Path) -> None:
    rows, _ = read(CASE / "in.jsonl")
    first = write_rows([rows.drop_columns(["_id", "_ord", "_src"])], tmp_path / "a.jsonl", "jsonl")
    again, fates = read(first.path)
    assert fates.num_rows == 0
    assert (
        write_rows([again.drop_columns(["_id", "_ord", "_src"])], tmp_path / "b.jsonl", "jsonl").sha256 == first.sha256
    )
