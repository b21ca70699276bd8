"""Parquet: any type comes back, chunks are row groups, files of a folder agree on a type."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.reading import data_rows

from datamill.errors import DatamillError
from datamill.services.reading.reader import plan_chunks
from datamill.services.reading.schema import dtypes
from datamill.services.reading.source import SourceSpec
from datamill.services.reading.whole import SourceTable, read_whole


def read_table(folder: Path, *tables: pa.Table, **options: Any) -> SourceTable:
    for index, table in enumerate(tables):
        pq.write_table(table, folder / f"{index}.parquet", row_group_size=2)
    return read_whole(SourceSpec("s", ".", folder, **options))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 3], pa.int64()),
        ([1, None, 3], pa.int16()),
        ([1.5, None, 2.0], pa.float64()),
        (["a", None, ""], pa.string()),
        (["a", None, "b"], pa.large_string()),
        (["a", "b", "a"], pa.dictionary(pa.int32(), pa.string())),
        ([True, None, False], pa.bool_()),
        ([b"\xff", None, b""], pa.binary()),
        ([Decimal("1.10"), None, Decimal(2)], pa.decimal128(10, 2)),
        ([dt.date(2024, 1, 2), None, None], pa.date32()),
        ([dt.datetime(2024, 1, 2, 3), None, None], pa.timestamp("us")),  # noqa: DTZ001  a type without zone
        ([[1], None, []], pa.list_(pa.int64())),
        ([[0.5, 1.0], None, [2.0, 3.0]], pa.list_(pa.float32(), 2)),
        (
            [[{"role": "u", "content": None}], [], None],
            pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])),
        ),
        ([{"a": {"b": [1]}}, None, {"a": None}], pa.struct([("a", pa.struct([("b", pa.list_(pa.int64()))]))])),
    ],
)
def test_types_come_back(tmp_path: Path, values: list[Any], kind: pa.DataType) -> None:
    table = read_table(tmp_path, pa.table({"v": pa.array(values, kind)}))
    assert [row["v"] for row in data_rows(table)] == values
    assert table.num_bad == 0


def test_row_groups_are_chunks_and_rows_are_numbered_across_them(tmp_path: Path) -> None:
    table = read_table(tmp_path, pa.table({"v": list(range(5))}))
    chunks = plan_chunks(SourceSpec("s", ".", tmp_path))
    assert [(c.start, c.end, c.first_line, c.num_newlines) for c in chunks] == [
        (0, 1, 1, 2),
        (1, 2, 3, 2),
        (2, 3, 5, 1),
    ]
    assert len({c.digest for c in chunks}) == 3
    assert table.rows["_src"].to_pylist() == [f"0.parquet:{i}" for i in range(1, 6)]
    assert len(set(table.rows["_id"].to_pylist())) == 5


def test_files_with_other_columns_and_types_are_joined(tmp_path: Path) -> None:
    one = pa.table({"v": pa.array([1], pa.int32()), "w": ["x"]})
    two = pa.table({"v": [0.5], "u": [[1]]})
    three = pa.table({"v": [2.0], "u": [["a"]]})
    table = read_table(tmp_path, one, two, three)
    assert dtypes(table.rows.schema) == {
        "_id": ("string", False), "_ord": ("int64", False), "_src": ("string", False),
        "v": ("double", False), "w": ("string", True), "u": ("json", True),
    }  # fmt: skip
    assert data_rows(table) == [
        {"v": 1.0, "w": "x", "u": None},
        {"v": 0.5, "w": None, "u": "[1]"},
        {"v": 2.0, "w": None, "u": '["a"]'},
    ]


def test_numbers_and_text_become_text(tmp_path: Path) -> None:
    table = read_table(tmp_path, pa.table({"v": [1]}), pa.table({"v": ["1a"]}))
    assert [row["v"] for row in data_rows(table)] == ["1", "1a"]


def test_projection_cast_and_system_names(tmp_path: Path) -> None:
    source = pa.table({"_id": ["x"], "v": [1], "w": [2]})
    table = read_table(tmp_path, source, columns=("_id", "v"), cast={"v": "string"})
    assert data_rows(table) == [{"orig_id": "x", "v": "1"}]


def test_an_empty_table_keeps_its_columns(tmp_path: Path) -> None:
    table = read_table(tmp_path, pa.table({"v": pa.array([], pa.int64())}))
    assert table.rows.num_rows == 0
    assert [issue.code for issue in table.findings] == ["DM-READ-102"]


def test_a_damaged_file_is_a_clear_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": [1]}), tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[:-20])
    with pytest.raises(DatamillError) as caught:
        read_whole(SourceSpec("s", ".", tmp_path))
    assert caught.value.code == "DM-READ-012"
