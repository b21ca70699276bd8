"""Case 07: a lone surrogate among emoji: read, counted, and written again."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.reading import data_rows, remarks

from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "07-lone-surrogates-and-emoji"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="needs ../shared")


def read(name: str, **options: object) -> SourceTable:
    return read_whole(SourceSpec("in", name, CASE, **options))  # type: ignore[arg-type]


TEXTS = ["😀", "broken \ufffd end", "👩\u200d👩\u200d👧\u200d👦🇧🇷", "ok"]


def test_one_row_is_repaired() -> None:
    table = read("in.jsonl")
    assert [row["text"] for row in data_rows(table)] == TEXTS
    assert remarks(table) == [("repaired_surrogate", "in.jsonl:2")]
    assert table.num_bad == 0


def test_everything_read_can_be_written(tmp_path: Path) -> None:
    table = read("in.jsonl")
    pq.write_table(table.rows, tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["text"].to_pylist() == TEXTS
    lines = [json.dumps(row, ensure_ascii=False).encode("utf-8") for row in data_rows(table)]
    assert [json.loads(line)["text"] for line in lines] == TEXTS


def test_cutting_to_ten_characters_leaves_no_half_pair() -> None:
    for row in data_rows(read("in.jsonl")):
        assert row["text"][:10].encode("utf-8").decode("utf-8") == row["text"][:10]
