"""Which files a source has: order, numbering, formats by content and name, and errors that say what to do."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamill.errors import DatamillError
from datamill.services.reading.files import detect_format, json_shape, resolve_files, suffix_format
from datamill.services.reading.source import SourceSpec


def write(folder: Path, **files: bytes) -> None:
    for name, data in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def test_folder_in_name_order_with_consecutive_numbers(tmp_path: Path) -> None:
    write(tmp_path, d__b_dot_jsonl=b"{}", d__a_dot_jsonl=b"{}", d__sub__c_dot_jsonl=b"{}", d___hidden_dot_jsonl=b"{}")
    write(tmp_path, d__readme_dot_md=b"x", d__table_dot_csv=b"a\n1\n")
    found = resolve_files(SourceSpec("s", "d", tmp_path, "jsonl"))
    assert [(f.index, f.relative, f.display) for f in found.files] == [
        (0, "a.jsonl", "d/a.jsonl"),
        (1, "b.jsonl", "d/b.jsonl"),
        (2, "sub/c.jsonl", "d/sub/c.jsonl"),
    ]
    (note,) = found.findings
    assert note.code == "DM-READ-109"
    assert "readme.md" in note.message
    assert "table.csv" in note.message


def test_glob_takes_what_it_names(tmp_path: Path) -> None:
    write(tmp_path, d__x1_dot_log=b"a\n", d__x2_dot_log=b"b\n", d__y_dot_log=b"c\n")
    found = resolve_files(SourceSpec("s", "d/x*.log", tmp_path, "txt"))
    assert [f.relative for f in found.files] == ["x1.log", "x2.log"]
    assert [f.relative for f in resolve_files(SourceSpec("s", "*/y.log", tmp_path, "txt")).files] == ["d/y.log"]


def test_a_missing_path_names_its_nearest_neighbour(tmp_path: Path) -> None:
    write(tmp_path, train_dot_jsonl=b"{}")
    with pytest.raises(DatamillError, match=r"did you mean `train\.jsonl`") as caught:
        resolve_files(SourceSpec("s", "trian.jsonl", tmp_path))
    assert caught.value.code == "DM-READ-001"


def test_a_folder_without_data(tmp_path: Path) -> None:
    write(tmp_path, d__readme_dot_md=b"x")
    with pytest.raises(DatamillError) as caught:
        resolve_files(SourceSpec("s", "d", tmp_path))
    assert caught.value.code == "DM-READ-002"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.jsonl", b'{"a":1}\n{"a":2}', "jsonl"),
        ("a.jsonl", b"[\n{}\n]", "json"),
        ("a.jsonl", b'[1]\n{"a":1}\n', "jsonl"),
        ("a.json", b'{"a":1}\n{"a":2}', "jsonl"),
        ("a.json", b'{"a":1}', "json"),
        ("a.json", b'{"a":oops}\n{"a":2}', "jsonl"),
        ("a.json", b"", "json"),
        ("a.jsonl", b'{\n"a": 1\n}', "json"),
        ("a.json", b'{\n"d": [\n{}\n]}', "json"),
        ("a.ndjson", b'{"a":1}', "jsonl"),
        ("a", b'{"a":1}\n', "jsonl"),
        ("a", b" [\n1]", "json"),
        ("a", b"plain words", "txt"),
        ("a.csv", b"{,}\n", "csv"),
        ("a.TSV", b"a\tb\n", "tsv"),
        ("a.txt", b"{}", "txt"),
        ("a.json.gz", gzip.compress(b'{"a":1}\n{"a":2}'), "jsonl"),
        ("a.csv.gz", gzip.compress(b"a\n1\n"), "csv"),
        ("a.jsonl", "\ufeff[\n{}]".encode("utf-16"), "json"),
    ],
)
def test_detect_format(tmp_path: Path, name: str, data: bytes, kind: str) -> None:
    (tmp_path / name).write_bytes(data)
    encoding = "utf-16" if data.startswith(b"\xff\xfe") else "utf-8"
    assert detect_format(tmp_path / name, encoding) == kind


def test_parquet_is_known_by_content(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.jsonl")
    assert detect_format(tmp_path / "a.jsonl") == "parquet"


@pytest.mark.parametrize(("name", "code"), [("a.bin", "DM-READ-007"), ("a.jsonl", "DM-READ-007")])
def test_binary_files_are_refused(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / name).write_bytes(b"\x7fELF\0\0\0\0")
    with pytest.raises(DatamillError) as caught:
        detect_format(tmp_path / name)
    assert caught.value.code == code


def test_text_that_calls_itself_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"hello")
    with pytest.raises(DatamillError) as caught:
        detect_format(tmp_path / "a.parquet")
    assert caught.value.code == "DM-READ-012"


def test_shape_of_a_first_line_longer_than_the_look() -> None:
    assert json_shape(b'{"a":"' + b"x" * 100, "jsonl") == "jsonl"
    assert json_shape(b'{"a":"' + b"x" * 100, "json") == "json"
    assert json_shape(b"words", "json") is None


def test_suffixes() -> None:
    assert suffix_format(Path("a.b.JSONL.GZ")) == "jsonl"
    assert suffix_format(Path("a.gz")) is None
