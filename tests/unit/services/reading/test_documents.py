"""JSON documents: every shape gives its records, broken ones cost themselves, and blocks may end anywhere."""

import json

import pytest
from support.reading import codes, data_rows, read_bytes, refused

from datamill.errors import DatamillError
from datamill.services.reading import bytestream

ROWS = [{"a": 1, "t": 'x"]},{['}, {"a": 2, "t": "back\\slash\\\\"}, {"a": 3, "t": "\\"}]


@pytest.fixture(params=[1, 2, 3, 5, 17, 1 << 20])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(bytestream.raw_blocks, "__defaults__", (request.param,))
    return request.param


def read_json(data: str | bytes, **options: object) -> object:
    return read_bytes(data if isinstance(data, bytes) else data.encode(), "in.json", **options)


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("lead", ["", "\ufeff", " \n "])
def test_array(indent: int | None, lead: str) -> None:
    text = lead + json.dumps(ROWS, indent=indent)
    table = read_json(text)
    assert data_rows(table) == ROWS
    raw = text.encode()
    for order, row in zip(table.rows["_ord"].to_pylist(), ROWS, strict=True):
        start = order >> 10
        assert json.JSONDecoder().raw_decode(raw[start:].decode())[0] == row


@pytest.mark.usefixtures("block_bytes")
def test_line_numbers_of_elements() -> None:
    table = read_json('[\n{"a":1},\n\n {"a":\n2}, {"a":3}\n]\n')
    assert table.rows["_src"].to_pylist() == ["in.json:2", "in.json:4", "in.json:5"]


@pytest.mark.usefixtures("block_bytes")
def test_a_broken_element_costs_itself() -> None:
    table = read_json('[{"a":1}, {"a":oops}, 3, {"a":2},\n]')
    assert data_rows(table) == [{"a": 1}, {"a": 2}]
    assert [(reason, src) for reason, src, _ in refused(table)] == [
        ("invalid_json", "in.json:1"),
        ("not_an_object", "in.json:1"),
    ]


@pytest.mark.usefixtures("block_bytes")
def test_an_array_that_breaks_off() -> None:
    table = read_json('[{"a":1}, {"a":2')
    assert data_rows(table) == [{"a": 1}]
    assert [reason for reason, _, _ in refused(table)] == ["invalid_json"]
    assert "ends inside" in table.fates["detail"][0].as_py()


@pytest.mark.usefixtures("block_bytes")
def test_text_after_the_array() -> None:
    table = read_json('[{"a":1}]\n\ngarbage')
    assert data_rows(table) == [{"a": 1}]
    assert refused(table) == [("invalid_json", "in.json:3", 11)]


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("text", ["", " \n", "[]", "[ ]\n"])
def test_empty_documents(text: str) -> None:
    table = read_json(text)
    assert table.rows.num_rows == 0
    assert table.num_bad == 0
    assert codes(table) == ["DM-READ-102"]


@pytest.mark.usefixtures("block_bytes")
def test_long_elements_are_passed_over() -> None:
    text = '[{"a":1},\n{"a":"' + "x" * 3000 + '"}, {"a":2}, {"a":"' + "y" * 3000 + '"}]'
    table = read_json(text, max_line_mb=0.001)
    assert data_rows(table) == [{"a": 1}, {"a": 2}]
    assert [(reason, src) for reason, src, _ in refused(table)] == [
        ("too_long", "in.json:2"),
        ("too_long", "in.json:2"),
    ]
    offsets = [offset for _, _, offset in refused(table)]
    assert all(text[offset] == "{" for offset in offsets)


def test_one_object_is_one_record() -> None:
    assert data_rows(read_json('{"a": 1, "b": "x"}')) == [{"a": 1, "b": "x"}]


@pytest.mark.parametrize("key", ["data", "rows", "ä"])
def test_array_under_a_key(key: str) -> None:
    text = json.dumps({"version": 1, key: ROWS}, ensure_ascii=False)
    table = read_json(text)
    assert data_rows(table) == ROWS
    (note,) = [issue for issue in table.findings if issue.code == "DM-READ-106"]
    assert f"`{key}`" in note.message
    assert "not read: version" in note.message
    start = table.rows["_ord"][1].as_py() >> 10
    assert text.encode()[start:].startswith(b'{"a": 2')


def test_two_arrays_of_records_are_a_question() -> None:
    text = json.dumps({"train": ROWS, "test": ROWS[:1]})
    with pytest.raises(DatamillError, match="train, test") as caught:
        read_json(text)
    assert caught.value.code == "DM-READ-008"
    assert len(data_rows(read_json(text, records="test"))) == 1


def test_unknown_records_key() -> None:
    with pytest.raises(DatamillError, match="did you mean `data`"):
        read_json('{"data": [{"a": 1}]}', records="dta")


def test_conversation_is_one_record() -> None:
    record = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}
    assert data_rows(read_json(json.dumps(record))) == [record]


@pytest.mark.parametrize("shape", [{"a": [1, 2], "b": ["x", "y"]}, {"a": {"0": 1, "1": 2}, "b": {"0": "x", "1": "y"}}])
def test_columns(shape: dict[str, object]) -> None:
    table = read_json(json.dumps(shape))
    assert data_rows(table) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert len(set(table.rows["_id"].to_pylist())) == 2
    assert "DM-READ-106" in codes(table)


@pytest.mark.parametrize(
    ("shape", "key"), [({"data": []}, "data"), ({"v": 1, "rows": []}, "rows"), ({"a": [], "b": []}, "a")]
)
def test_an_object_with_an_empty_array_is_one_row_and_a_remark_says_how_to_read_none(
    shape: dict[str, object], key: str
) -> None:
    table = read_json(json.dumps(shape))
    assert data_rows(table) == [shape]
    (note,) = [issue for issue in table.findings if issue.code == "DM-READ-106"]
    assert f"the array under `{key}` is empty" in note.message
    assert f"options.records: {key}" in note.message
    assert note.severity == "note"
    assert read_json(json.dumps(shape), records=key).rows.num_rows == 0


def test_an_object_without_empty_arrays_needs_no_remark() -> None:
    for text in ('{"a": 1}', '{"a": {}}', '{"a": [1], "b": [1, 2]}', '{"a": ""}'):
        assert "DM-READ-106" not in codes(read_json(text))


def test_an_invalid_object_is_refused_whole() -> None:
    table = read_json('{"a": [1, 2}')
    assert table.rows.num_rows == 0
    assert [reason for reason, _, _ in refused(table)] == ["invalid_json"]


def test_values_in_documents_stay_exact() -> None:
    table = read_json('[{"n": 18446744073709551617, "s": "\\ud800", "x": NaN, "x": Infinity}]')
    row = data_rows(table)[0]
    assert row["n"] == "18446744073709551617"
    assert row["s"] == "\ufffd"
    noted = {f["reason"] for f in table.fates.to_pylist()}
    assert noted == {"repaired_surrogate", "nonstandard_number", "duplicate_key"}


def test_invalid_bytes_in_an_element() -> None:
    table = read_json(b'{"data": [{"a": "\xff"}, {"a": "ok"}]}')
    assert data_rows(table) == [{"a": "ok"}]
    assert [reason for reason, _, _ in refused(table)] == ["invalid_encoding"]


def test_json_lines_under_a_json_name() -> None:
    table = read_json('{"a": 1}\n{"a": 2}\n')
    assert data_rows(table) == [{"a": 1}, {"a": 2}]
    assert codes(table) == []  # the format was not declared, so nothing disagrees


def test_array_under_a_jsonl_name_with_declared_format() -> None:
    table = read_bytes(b'[{"a": 1},\n {"a": 2}]', "in.jsonl", format="jsonl")
    assert data_rows(table) == [{"a": 1}, {"a": 2}]
    assert codes(table) == ["DM-READ-112"]
