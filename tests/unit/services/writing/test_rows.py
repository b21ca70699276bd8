"""write_rows: bytes depend on rows alone, every format reads back, inputs are safe, failures leave nothing."""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from datamill.errors import DatamillError
from datamill.services.writing import write_rows

JSON_FIELD = pa.field("raw", pa.string(), metadata={b"datamill.dtype": b"json"})


def table(size: int = 25) -> pa.Table:
    base = pa.table(
        {
            "text": ['😀 女👩‍👩‍👧‍👦 \u2028 "quoted", line\nbreak' if i % 3 else None for i in range(size)],
            "n": list(range(size)),
            "x": [i / 7 for i in range(size)],
            "tags": [["a", "b"][: i % 3] for i in range(size)],
        }
    )
    raw = ['{"k": [1, 007]}'.replace("007", "7") if i % 2 else '"text"' for i in range(size)]
    return base.append_column(JSON_FIELD, pa.array(raw, pa.string()))


def expected(rows: pa.Table) -> list[dict[str, Any]]:
    return [{**row, "raw": json.loads(row["raw"])} for row in rows.to_pylist()]


@pytest.mark.parametrize("format_", ["jsonl", "json"])
def test_json_formats_read_back(tmp_path: Path, format_: str) -> None:
    written = write_rows([table()], tmp_path / f"a.{format_}", format_)
    text = written.path.read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.split("\n") if line] if format_ == "jsonl" else json.loads(text)
    assert rows == expected(table())
    assert "女" in text
    assert "\\u" not in text
    assert (written.rows, written.bytes) == (25, written.path.stat().st_size)


def test_csv_reads_back(tmp_path: Path) -> None:
    write_rows([table()], tmp_path / "a.csv", "csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text(encoding="utf-8"), newline="")))
    assert [row["text"] or None for row in rows] == table()["text"].to_pylist()
    assert [json.loads(row["tags"]) for row in rows] == table()["tags"].to_pylist()


def test_parquet_reads_back_with_its_types(tmp_path: Path) -> None:
    write_rows([table()], tmp_path / "a.parquet", "parquet")
    back = pq.read_table(tmp_path / "a.parquet")
    assert back.equals(table())
    assert back.schema.field("raw").metadata[b"datamill.dtype"] == b"json"


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet", "a.jsonl.gz", "a.jsonl.zst"])
def test_bytes_do_not_depend_on_how_rows_were_cut(tmp_path: Path, name: str) -> None:
    rows = table(23_000 if name.endswith("parquet") else 300)
    format_ = name.split(".")[1]
    digests = set()
    for step in (rows.num_rows, 17_001, 111):
        cuts = [rows.slice(at, step) for at in range(0, rows.num_rows, step)]
        digests.add(write_rows(cuts, tmp_path / str(step) / name, format_).sha256)
    assert len(digests) == 1


def test_compression_follows_the_suffix(tmp_path: Path) -> None:
    plain = write_rows([table()], tmp_path / "a.jsonl", "jsonl").path.read_bytes()
    zipped = write_rows([table()], tmp_path / "a.jsonl.gz", "jsonl").path.read_bytes()
    packed = write_rows([table()], tmp_path / "a.jsonl.zst", "jsonl").path.read_bytes()
    assert gzip.decompress(zipped) == plain
    assert zstandard.ZstdDecompressor().decompressobj().decompress(packed) == plain


def test_a_folder_gets_a_named_file(tmp_path: Path) -> None:
    assert write_rows([table()], tmp_path, "jsonl", name="clean").path == tmp_path / "clean.jsonl"


def test_no_rows_and_no_tables(tmp_path: Path) -> None:
    assert write_rows([], tmp_path / "a.json", "json").path.read_text() == "[]\n"
    assert write_rows([table(0)], tmp_path / "a.jsonl", "jsonl").bytes == 0
    assert write_rows([table(0)], tmp_path / "a.csv", "csv").path.read_text() == "text,n,x,tags,raw\n"
    write_rows([table(0)], tmp_path / "a.parquet", "parquet")
    assert pq.read_table(tmp_path / "a.parquet").schema.equals(table(0).schema)


def test_inputs_are_never_replaced(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("{}\n")
    (tmp_path / "link.jsonl").symlink_to(source)
    for target in (source, tmp_path / "link.jsonl", tmp_path / "sub" / ".." / "in.jsonl"):
        with pytest.raises(DatamillError, match="DM-OPB-011"):
            write_rows([table()], target, "jsonl", protect=[source])
    assert source.read_text() == "{}\n"


def test_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DatamillError, match="did you mean `jsonl`"):
        write_rows([], tmp_path / "a", "jsonlines")


def test_a_failure_half_way_leaves_the_old_file_alone(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.Table]:
        yield table()
        raise ValueError("planted")

    target = tmp_path / "a.jsonl"
    before = write_rows([table(3)], target, "jsonl")
    with pytest.raises(ValueError, match="planted"):
        write_rows(broken(), target, "jsonl")
    assert target.stat().st_size == before.bytes
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_json_text_with_line_breaks_stays_one_record(tmp_path: Path) -> None:
    rows = pa.table([pa.array(['{\n "a": "é"\n}', None])], schema=pa.schema([JSON_FIELD]))
    text = write_rows([rows], tmp_path / "a.jsonl", "jsonl").path.read_text()
    assert [json.loads(line) for line in text.splitlines()] == [{"raw": {"a": "é"}}, {"raw": None}]
