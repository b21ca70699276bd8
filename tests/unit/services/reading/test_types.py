"""Types of columns: what each mixture becomes, that nothing changes, and that cuts and order of work do not matter."""

import json
from typing import Any

import pyarrow as pa
import pytest
from support.reading import codes, data_rows, read_bytes, refused

from datamill.errors import DatamillError
from datamill.services.reading.columns import merge_types, nested_array
from datamill.services.reading.schema import dtypes


def read_values(*values: str, **options: Any) -> Any:
    return read_bytes("".join(f'{{"v":{value}}}\n' for value in values).encode(), **options)


def dtype_of(table: Any) -> str:
    return dtypes(table.rows.schema)["v"][0]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["1", "2"], "int64"),
        (["1", "2.5"], "double"),
        (["true", "false"], "bool"),
        (['"a"', "null"], "string"),
        (["null", "null"], "string"),
        (["1", '"a"'], "string"),
        (["true", "1"], "string"),
        (["true", "1.5"], "string"),
        (["9007199254740993", "0.5"], "string"),
        (["9007199254740992", "0.5"], "double"),
        (["[1]", "[]", "null"], "list<item: int64>"),
        (["[1]", "[2.5]"], "list<item: double>"),
        (["[1]", '["a"]'], "json"),
        (["[true]", "[1]"], "json"),
        (["[true]", "[1.5]"], "json"),
        (["[9007199254740993]", "[0.5]"], "json"),
        (["[1]", "1"], "json"),
        (["{}", '{"a":1}'], "struct<a: int64>"),
        (["{}", "{}"], "json"),
        (['{"a":1}', '{"a":"x"}'], "json"),
        (['{"a":1}', "[1]"], "json"),
        (['{"a":1,"b":2}', '{"a":1}'], "struct<a: int64, b: int64>"),
        (['{"a":1}', '{"b":1}', '{"c":1}'], "json"),
        (['[{"role":"user","content":"x"}]'], "list<item: struct<role: string, content: string>>"),
    ],
)
def test_what_a_column_becomes(values: list[str], dtype: str) -> None:
    for ordered in (values, values[::-1]):
        together = read_values(*ordered)
        apart = read_values(*ordered, chunk_bytes=1)
        assert dtype_of(apart) == dtype_of(together)
        if not dtype.startswith("struct"):
            assert dtype_of(together) == dtype
    assert dtype_of(read_values(*values)) == dtype
    assert refused(read_values(*values)) == []


def test_mixed_scalars_are_kept_as_written() -> None:
    written = ["1", "1.50", "1e3", "-0", "true", "null", '"x y"', "100000000000000000000000"]
    table = read_values(*written)
    expected = ["1", "1.50", "1e3", "-0", "true", None, "x y", "100000000000000000000000"]
    assert [row["v"] for row in data_rows(table)] == expected


def test_json_columns_keep_every_value_and_its_type() -> None:
    written = ['"x"', '["y"]', "[]", '{"a": 1.0}', "1", "null", '"[1]"']
    table = read_values(*written)
    got = [row["v"] for row in data_rows(table)]
    assert got == ['"x"', '["y"]', "[]", '{"a": 1.0}', "1", None, '"[1]"']
    assert json.loads(got[0]) == "x"


def test_the_warning_names_column_rows_and_types() -> None:
    table = read_values("1", "2", '"a"', "[3]")
    (issue,) = [i for i in table.findings if i.code == "DM-READ-103"]
    assert issue.severity == "warning"
    for part in ("`v`", "integer first at in.jsonl:1", "string first at in.jsonl:3", "array first at in.jsonl:4"):
        assert part in issue.message
    assert issue.fix is not None
    assert "cast" in issue.fix


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["[1]", '["a"]'], "arrays whose inner types differ; it is read as JSON text"),
        ([f'{{"k{i}": {i}}}' for i in range(5)], "objects whose keys or inner types differ"),
        (["123456789012345678901"], "integer beyond 64 bits first at in.jsonl:1; it is read as text"),
    ],
)
def test_warnings_about_one_kind(values: list[str], words: str) -> None:
    (issue,) = [i for i in read_values(*values).findings if i.code == "DM-READ-103"]
    assert words in issue.message


def test_plain_columns_give_no_warning() -> None:
    assert codes(read_values("1", "2.5", "3")) == []


def test_objects_with_ever_new_keys_become_json_text() -> None:
    values = [f'{{"k{i}": {i}}}' for i in range(3000)]
    table = read_values(*values)
    assert dtype_of(table) == "json"
    assert [row["v"] for row in data_rows(table)] == values


@pytest.mark.parametrize(
    ("kind", "values", "kept", "lost"),
    [
        ("int64", ["1", '"2"', "3.0", "3.5", '"x"', '"1_000"', "9223372036854775808"], [1, 2, 3], 4),
        ("double", ["1", '"2.5"', "true", '"x"', "9007199254740993"], [1.0, 2.5], 3),
        ("bool", ["true", '"false"', "1", "0", "2", '"maybe"'], [True, False, True, False], 2),
        ("string", ["1", '"1a"', "[1, 2]", "null"], ["1", "1a", "[1, 2]", None], 0),
        ("json", ["1", '"1a"', "null"], ["1", '"1a"', None], 0),
    ],
)
def test_cast(kind: str, values: list[str], kept: list[Any], lost: int) -> None:
    table = read_values(*values, cast={"v": kind})
    assert [row["v"] for row in data_rows(table)] == kept
    assert [reason for reason, _, _ in refused(table)] == ["type_mismatch"] * lost
    assert dtype_of(table) == kind


def test_cast_refusals_name_the_column() -> None:
    table = read_values("1", '"x"', cast={"v": "int64"})
    assert "column `v`: 'x' is not an integer" in table.fates["detail"][0].as_py()
    assert not table.rows.schema.field("v").nullable


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"columns": ("w",)}, "DM-READ-009"),
        ({"cast": {"w": "string"}}, "DM-READ-009"),
        ({"cast": {"v": "date"}}, "DM-READ-014"),
    ],
)
def test_unknown_columns_and_types(options: dict[str, Any], code: str) -> None:
    with pytest.raises(DatamillError) as caught:
        read_values("1", **options)
    assert caught.value.code == code
    assert caught.value.exit_code == 3


def test_projection_keeps_the_order_of_the_data() -> None:
    table = read_bytes(b'{"a":1,"b":2,"c":3}\n', columns=("c", "a"))
    assert data_rows(table) == [{"a": 1, "c": 3}]


def test_system_names_are_renamed_with_a_warning() -> None:
    table = read_bytes(b'{"_id":"x","orig_id":1,"_src":"y"}\n')
    assert data_rows(table) == [{"orig_id_": "x", "orig_id": 1, "orig_src": "y"}]
    assert codes(table).count("DM-READ-107") == 2


def test_columns_come_in_order_of_first_appearance() -> None:
    data = b'{"b":1}\n{"a":1,"b":1}\n{"c":1,"a":2}\n'
    for chunk_bytes in (1, 1 << 20):
        assert read_bytes(data, chunk_bytes=chunk_bytes).rows.column_names[3:] == ["b", "a", "c"]


def test_nullability_is_a_fact() -> None:
    table = read_bytes(b'{"a":1,"b":null}\n{"a":2,"b":1}\n')
    assert dtypes(table.rows.schema)["a"] == ("int64", False)
    assert dtypes(table.rows.schema)["b"] == ("int64", True)


def test_merge_is_symmetric_and_associative_on_a_few_types() -> None:
    kinds = [pa.int64(), pa.uint64(), pa.float64(), pa.string(), pa.null(), pa.list_(pa.int64()), pa.bool_()]
    for one in kinds:
        assert merge_types(one, one) == one
        for two in kinds:
            assert merge_types(one, two) == merge_types(two, one)


def test_arrow_may_not_make_numbers_of_booleans() -> None:
    assert nested_array([[1.5], [True]]) is None
    assert nested_array([{"a": [1.5]}, {"a": [False]}]) is None
    assert nested_array([[1.5], [2]]) is not None
