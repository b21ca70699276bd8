"""JSON Lines: what becomes a row, what is refused, what is noted, and that values stay exact."""

import json
import math

import pytest
from support.reading import codes, data_rows, read_bytes, refused, remarks

from datamill.errors import DatamillError
from datamill.services.reading.jsonrows import raw_members
from datamill.services.records import row_id, row_order


def test_ids_order_and_places() -> None:
    table = read_bytes(b'{"a":1}\n\n{"a":2}\n')
    assert table.rows["_id"].to_pylist() == [row_id("src:in.jsonl", 0), row_id("src:in.jsonl", 9)]
    assert table.rows["_ord"].to_pylist() == [row_order(0, 0), row_order(0, 9)]
    assert table.rows["_src"].to_pylist() == ["in.jsonl:1", "in.jsonl:3"]
    assert table.num_blank == 1


def test_every_kind_of_broken_record_is_refused_with_its_place() -> None:
    lines = [
        b'{"a":1}', b'{"a":', b"[1]", b'"text"', b"3", b"null", b"true",
        b'{"a":"\xff"}', b'{"a":1} {"a":2}', b"not json", b'{"a":"' + b"[" * 3 + b'"}',
    ]  # fmt: skip
    table = read_bytes(b"\n".join(lines))
    offsets = [sum(len(line) + 1 for line in lines[:i]) for i in range(len(lines))]
    reasons = {
        1: "invalid_json", 2: "not_an_object", 3: "not_an_object", 4: "not_an_object", 5: "not_an_object",
        6: "not_an_object", 7: "invalid_encoding", 8: "invalid_json", 9: "invalid_json",
    }  # fmt: skip
    assert refused(table) == [(reason, f"in.jsonl:{i + 1}", offsets[i]) for i, reason in reasons.items()]
    assert table.rows.num_rows == 2
    assert table.num_bad == len(reasons)


def test_a_refused_record_keeps_its_id_error_and_head() -> None:
    table = read_bytes(b'{"a":1}\n{"a":oops' + b"x" * 500 + b"}\n")
    (fate,) = table.fates.to_pylist()
    assert fate["id"] == row_id("src:in.jsonl", 8)
    assert "Expecting value" in fate["detail"]
    assert '{"a":oops' in fate["detail"]
    assert len(fate["detail"]) < 400


def test_deep_nesting_is_refused_not_a_crash() -> None:
    deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    table = read_bytes(b'{"a":1}\n' + deep + b"\n")
    assert refused(table) == [("too_deep", "in.jsonl:2", 8)]


@pytest.mark.parametrize("number", [2**63, 2**64, 10**30, -(2**63) - 1, int("9" * 300)])
def test_integers_beyond_64_bits_stay_exact(number: int) -> None:
    table = read_bytes(f'{{"n":{number}}}\n{{"n":1}}\n'.encode())
    assert data_rows(table) == [{"n": str(number)}, {"n": "1"}]
    assert "DM-READ-103" in codes(table)


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**53 + 1, 0])
def test_integers_of_64_bits_are_numbers(number: int) -> None:
    table = read_bytes(f'{{"n":{number}}}\n{{"n":1}}\n'.encode())
    assert data_rows(table) == [{"n": number}, {"n": 1}]


def test_nested_integers_beyond_64_bits_stay_exact() -> None:
    table = read_bytes(b'{"n":[18446744073709551616, 1]}\n')
    assert data_rows(table) == [{"n": "[18446744073709551616, 1]"}]


def test_an_absurd_integer_is_refused_not_a_crash() -> None:
    table = read_bytes(b'{"n":' + b"7" * 10_000 + b'}\n{"n":1}\n')
    assert refused(table) == [("invalid_json", "in.jsonl:1", 0)]


def test_long_digit_runs_in_text_and_decimals_change_nothing() -> None:
    rows = [{"t": "id 12345678901234567890123", "x": 0.12345678901234568}, {"t": "0" * 40, "x": 1e-20}]
    table = read_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    assert data_rows(table) == rows
    assert refused(table) == []


def test_leading_zeros_stay_text() -> None:
    assert data_rows(read_bytes(b'{"id":"007"}\n')) == [{"id": "007"}]


def test_dates_are_not_guessed() -> None:
    assert data_rows(read_bytes(b'{"d":"2024-01-02T03:04:05Z"}\n')) == [{"d": "2024-01-02T03:04:05Z"}]


def test_lone_surrogates_in_values_keys_and_depth() -> None:
    table = read_bytes(b'{"a":"x\\ud800","b\\udc00":{"c":["\\udfff"]}}\n{"a":"\\ud83d\\ude00"}\n')
    assert data_rows(table)[0] == {"a": "x\ufffd", "b\ufffd": {"c": ["\ufffd"]}}
    assert data_rows(table)[1]["a"] == "😀"
    assert remarks(table) == [("repaired_surrogate", "in.jsonl:1")]


def test_a_repaired_value_stays_repaired_in_a_mixed_column() -> None:
    table = read_bytes(b'{"a":"x\\ud800"}\n{"a":[1]}\n')
    assert [json.loads(row["a"]) for row in data_rows(table)] == ["x\ufffd", [1]]


def test_nan_is_not_taken_for_a_repair() -> None:
    table = read_bytes(b'{"a":NaN,"t":"\\u00e9"}\n{"a":-Infinity,"t":""}\n')
    rows = data_rows(table)
    assert math.isnan(rows[0]["a"])
    assert rows[1]["a"] == -math.inf
    assert remarks(table) == [("nonstandard_number", "in.jsonl:1"), ("nonstandard_number", "in.jsonl:2")]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a":1,"a":2}', 2),
        (b'{"a" :1,"a"\t:2}', 2),
        (b'{"a":1, "b":":", "a":2}', 2),
    ],
)
def test_of_duplicate_keys_the_last_wins_and_is_noted(line: bytes, value: int) -> None:
    table = read_bytes(b'{"a":0}\n' + line + b"\n")
    assert data_rows(table)[1]["a"] == value
    assert remarks(table) == [("duplicate_key", "in.jsonl:2")]


def test_nested_duplicate_keys_are_noted() -> None:
    table = read_bytes(b'{"m":[{"r":1,"r":2}]}\n{"m":[{"r":3}]}\n')
    assert remarks(table) == [("duplicate_key", "in.jsonl:1")]
    assert "r" in table.fates["detail"][0].as_py()


@pytest.mark.parametrize("line", [b'{"a":"\\":","b":" :"}', b'{"a":{"a":{"a":1}}}', b'{"a":"x :y: \\"z\\": "}'])
def test_no_duplicate_is_invented(line: bytes) -> None:
    assert remarks(read_bytes(line + b"\n")) == []


def test_byte_order_mark_inside_the_file_is_removed_and_noted() -> None:
    table = read_bytes(b'\xef\xbb\xbf{"a":1}\n\xef\xbb\xbf{"a":2}\n')
    assert data_rows(table) == [{"a": 1}, {"a": 2}]
    assert remarks(table) == [("stray_bom", "in.jsonl:2")]


def test_too_long_records_are_refused_and_the_rest_read() -> None:
    table = read_bytes(b'{"a":"' + b"x" * 5000 + b'"}\n{"a":"y"}\n', max_line_mb=0.001)
    assert data_rows(table) == [{"a": "y"}]
    assert refused(table) == [("too_long", "in.jsonl:1", 0)]


def test_too_many_broken_records_stop_the_run_and_say_how_to_go_on() -> None:
    data = b"".join(b'{"a":1}\n' for _ in range(96)) + b"bad\n" * 4
    with pytest.raises(DatamillError) as caught:
        read_bytes(data, max_bad=0.01)
    text = str(caught.value)
    assert caught.value.code == "DM-READ-004"
    assert caught.value.exit_code == 1
    assert "4 of 100" in text
    assert text.count("invalid_json") == 3
    assert "in.jsonl:97" in text
    assert "max_bad: 0.05" in text
    assert read_bytes(data, max_bad=0.05).num_bad == 4


def test_exactly_max_bad_is_accepted() -> None:
    data = b'{"a":1}\n' * 99 + b"bad\n"
    assert read_bytes(data, max_bad=0.01).num_bad == 1


def test_fail_stops_at_the_first_broken_record() -> None:
    with pytest.raises(DatamillError, match="on_bad_row") as caught:
        read_bytes(b'{"a":1}\nbad\nworse\n', on_bad_row="fail")
    assert caught.value.code == "DM-READ-005"
    assert caught.value.issues[0].line == 2


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("{}", {}),
        ('{"a":1.50}', {"a": "1.50"}),
        (' { "a" : [1, {"b":"]"}] , "c\\u0041" : -0 } ', {"a": '[1, {"b":"]"}]', "cA": "-0"}),
        ('{"a":1,"a":"x"}', {"a": '"x"'}),
        ('\ufeff{"a":null}', {"a": "null"}),
    ],
)
def test_raw_members(text: str, members: dict[str, str]) -> None:
    assert raw_members(text.encode()) == members
