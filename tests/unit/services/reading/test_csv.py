"""CSV after RFC 4180: fields keep their text, broken quotes cost their line only."""

import csv
import io

import pytest
from support.reading import data_rows, read_bytes, refused

from datamill.errors import DatamillError
from datamill.services.reading.csvrows import QuoteScanner, UnbalancedQuoteError


def rows_of(data: bytes, **options: object) -> list[dict[str, object]]:
    return data_rows(read_bytes(data, "in.csv", **options))


def test_text_is_not_interpreted() -> None:
    words = ["007", "NA", "null", "None", "1e5", "2024-01-02", "true", " x "]
    data = b"v,w\n" + b"".join(f"{word},-\n".encode() for word in words)
    assert [row["v"] for row in rows_of(data)] == words


def test_empty_is_null_and_quoted_empty_is_text() -> None:
    assert rows_of(b'a,b\n,""\n"",\n') == [{"a": None, "b": ""}, {"a": "", "b": None}]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [b"", b"end"])
def test_quoted_fields(end: bytes, last: bytes) -> None:
    data = end.join([b"a,b", b'"x,1","say ""hi"""', b'"two', b'lines",2', b"p,q"]) + (end if last else b"")
    inner = "two\r\nlines" if end == b"\r\n" else "two\nlines"
    expected = [{"a": "x,1", "b": 'say "hi"'}, {"a": inner, "b": "2"}, {"a": "p", "b": "q"}]
    table = read_bytes(data, "in.csv")
    assert data_rows(table) == expected
    assert table.rows["_src"].to_pylist() == ["in.csv:2", "in.csv:3", "in.csv:5"]


def test_a_quote_that_never_closes_costs_its_line_only() -> None:
    table = read_bytes(b'a,b\n1,"open\n2,x\n3,y\n', "in.csv")
    assert data_rows(table) == [{"a": "2", "b": "x"}, {"a": "3", "b": "y"}]
    assert refused(table) == [("unbalanced_quote", "in.csv:2", 4)]


def test_a_quote_closed_by_a_later_row_costs_its_line_only() -> None:
    table = read_bytes(b'a,b\n1,"open\n2,x\n3,"y"\n4,"z"\n', "in.csv")
    assert data_rows(table) == [{"a": "2", "b": "x"}, {"a": "3", "b": "y"}, {"a": "4", "b": "z"}]
    assert refused(table) == [("unbalanced_quote", "in.csv:2", 4)]


def test_every_line_with_an_open_quote() -> None:
    table = read_bytes(b"a\n" + b'"x\n' * 50, "in.csv")
    assert table.rows.num_rows + table.num_bad == 50
    assert {reason for reason, _, _ in refused(table)} == {"unbalanced_quote"}


def test_a_quote_inside_an_unquoted_field_is_text() -> None:
    assert rows_of(b'a,b\n5" pipe,x "y" z\n') == [{"a": '5" pipe', "b": 'x "y" z'}]


def test_a_huge_open_field_is_given_up_at_the_limit() -> None:
    data = b'a,b\n1,"open\n' + b"2,x\n" * 1000
    table = read_bytes(data, "in.csv", max_line_mb=0.001)
    assert table.rows.num_rows == 1000
    assert refused(table) == [("unbalanced_quote", "in.csv:2", 4)]


def test_wrong_number_of_fields() -> None:
    table = read_bytes(b"a,b\n1,2\n1\n1,2,3\n", "in.csv")
    assert data_rows(table) == [{"a": "1", "b": "2"}]
    assert refused(table) == [("wrong_field_count", "in.csv:3", 8), ("wrong_field_count", "in.csv:4", 10)]


def test_invalid_bytes_cost_their_record() -> None:
    table = read_bytes(b"a\nok\n\xff\nfine\n", "in.csv")
    assert [row["a"] for row in data_rows(table)] == ["ok", "fine"]
    assert refused(table) == [("invalid_encoding", "in.csv:3", 5)]


def test_header_names() -> None:
    assert rows_of(b"a,,a,a\n1,2,3,4\n") == [{"a": "1", "column_2": "2", "a_2": "3", "a_3": "4"}]
    assert rows_of(b'"na""me","x\ny"\n1,2\n') == [{'na"me': "1", "x\ny": "2"}]
    assert rows_of(b"1,2\n3,4\n", header=False) == [
        {"column_1": "1", "column_2": "2"},
        {"column_1": "3", "column_2": "4"},
    ]


@pytest.mark.parametrize(("mark", "name"), [(";", "in.csv"), ("\t", "in.csv"), ("|", "in.csv"), ("\t", "in.tsv")])
def test_separator_is_found(mark: str, name: str) -> None:
    data = f'a{mark}"b,c"\n1{mark}2\n'.encode()
    assert data_rows(read_bytes(data, name)) == [{"a": "1", "b,c": "2"}]


def test_declared_separator_and_quote() -> None:
    assert rows_of(b"a:b\n'x:y':2\n", delimiter=":", quote="'") == [{"a": "x:y", "b": "2"}]


@pytest.mark.parametrize("options", [{"delimiter": ",,"}, {"quote": "\n"}, {"delimiter": "é"}])
def test_bad_separators(options: dict[str, str]) -> None:
    with pytest.raises(DatamillError) as caught:
        rows_of(b"a,b\n1,2\n", **options)
    assert caught.value.code == "DM-READ-013"


def test_only_a_header_is_an_empty_table_with_columns() -> None:
    table = read_bytes(b"a,b\n", "in.csv")
    assert table.rows.column_names[3:] == ["a", "b"]
    assert table.rows.num_rows == 0
    assert [issue.code for issue in table.findings] == ["DM-READ-102"]


def test_cast_of_csv_columns() -> None:
    table = read_bytes(b'i,j\n1,"[1]"\nx,2\n3,{\n', "in.csv", cast={"i": "int64", "j": "json"})
    assert data_rows(table) == [{"i": 1, "j": "[1]"}]
    assert [reason for reason, _, _ in refused(table)] == ["type_mismatch"] * 2


def test_agrees_with_the_standard_library_on_its_own_output() -> None:
    rows = [["a", "b"], ['q"q', "x,\ny"], ["", "line\nbreak"], ["plain", '""'], ["\t", ","]]
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    got = rows_of(sink.getvalue().encode())
    assert [list(row.values()) for row in got] == rows[1:]


def test_scanner_refuses_text_after_a_closing_quote() -> None:
    scanner = QuoteScanner(b",", b'"')
    with pytest.raises(UnbalancedQuoteError, match="byte 3"):
        scanner.feed(b'"a"b')
    assert QuoteScanner(b",", b'"').feed(b'"a"\r') == [b"a"]
