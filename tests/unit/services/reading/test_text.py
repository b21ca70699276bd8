"""Plain text: lines, paragraphs, whole files; breaks inside a row stay."""

import pytest
from support.reading import codes, data_rows, read_bytes, refused

from datamill.services.reading import bytestream

POEM = b"one\r\ntwo\r\n\r\n \t\r\nthree\nfour\n"


@pytest.fixture(params=[1, 3, 1 << 20], autouse=True)
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(bytestream.raw_blocks, "__defaults__", (request.param,))
    return request.param


def texts(data: bytes, unit: str, **options: object) -> list[str]:
    return [row["text"] for row in data_rows(read_bytes(data, "in.txt", unit=unit, **options))]


def test_units() -> None:
    assert texts(POEM, "line") == ["one", "two", "three", "four"]
    assert texts(POEM, "paragraph") == ["one\r\ntwo", "three\nfour"]
    assert texts(POEM, "whole") == [POEM.decode().removesuffix("\n")]


def test_places() -> None:
    table = read_bytes(POEM, "in.txt", unit="paragraph")
    assert table.rows["_src"].to_pylist() == ["in.txt:1", "in.txt:5"]
    assert [order >> 10 for order in table.rows["_ord"].to_pylist()] == [0, 16]


def test_leading_blank_lines_belong_to_the_whole_text() -> None:
    assert texts(b"\n\na\n", "whole") == ["\n\na"]


@pytest.mark.parametrize("unit", ["line", "paragraph", "whole"])
def test_empty_texts_have_no_row(unit: str) -> None:
    for data in (b"", b"\n", b"  \n\n"):
        table = read_bytes(data, "in.txt", unit=unit)
        assert table.rows.num_rows == 0
        assert codes(table) == ["DM-READ-102"]


@pytest.mark.parametrize("unit", ["line", "paragraph", "whole"])
def test_invalid_bytes_cost_their_row(unit: str) -> None:
    table = read_bytes(b"ok\n\n\xff\n\nfine\n", "in.txt", unit=unit)
    assert [reason for reason, _, _ in refused(table)] == ["invalid_encoding"]
    assert table.rows.num_rows == (0 if unit == "whole" else 2)


def test_too_long_rows() -> None:
    data = b"a\n\n" + b"x" * 600 + b"\n" + b"y" * 600 + b"\n\nb\n"
    for unit, kept in (("paragraph", ["a", "b"]), ("whole", [])):
        table = read_bytes(data, "in.txt", unit=unit, max_line_mb=0.001)
        assert [row["text"] for row in data_rows(table)] == kept
        assert [reason for reason, _, _ in refused(table)] == ["too_long"]


def test_a_whole_text_with_one_overlong_line_is_refused_whole() -> None:
    data = b"a\n" * 50 + b"x" * 3000 + b"\n" + b"b\n" * 50
    table = read_bytes(data, "in.txt", unit="whole", max_line_mb=0.001)
    assert table.rows.num_rows == 0
    assert [reason for reason, _, _ in refused(table)] == ["too_long"]


def test_unicode_separators_do_not_end_a_line() -> None:
    assert texts("a\u2028b\u0085c\x0cd\n".encode(), "line") == ["a\u2028b\u0085c\x0cd"]


def test_json_in_a_text_file_is_a_warning() -> None:
    table = read_bytes(b'{"a": 1}\n{"a": 2}\n', "in.txt")
    (issue,) = [issue for issue in table.findings if issue.code == "DM-READ-105"]
    assert issue.severity == "warning"
    assert issue.fix == "set format: jsonl"
    assert table.rows.num_rows == 2
