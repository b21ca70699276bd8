"""Records end at newlines and nowhere else, whatever the blocks of the stream are."""

from pathlib import Path

import pytest

from datamill.services.reading import bytestream
from datamill.services.reading.bytestream import ByteStream
from datamill.services.reading.lines import split_lines
from datamill.services.reading.source import Chunk, FileEntry


def chunk_of(path: Path, **fields: object) -> Chunk:
    size = path.stat().st_size
    file = FileEntry(path, path.name, path.name, 0, "jsonl", num_bytes=size, **fields)  # type: ignore[arg-type]
    return Chunk(file, 0, size, 1, 0, "")


def lines_of(path: Path, max_bytes: int = 1 << 20, **fields: object) -> tuple[list[tuple[bytes, int, int]], list]:
    rows, bad = [], []
    for block in split_lines(ByteStream(chunk_of(path, **fields)), 1, max_bytes):
        rows += list(zip(block.raws, block.offsets.tolist(), block.lines.tolist(), strict=True))
        bad += block.bad
    return rows, bad


@pytest.fixture(params=[1, 2, 3, 7, 64, 1 << 20])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Read in blocks of this size, so that every boundary falls everywhere."""
    monkeypatch.setattr(bytestream.raw_blocks, "__defaults__", (request.param,))
    return request.param


@pytest.mark.usefixtures("block_bytes")
def test_positions_and_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\r\n\nfour")
    rows, bad = lines_of(path)
    assert rows == [(b"one", 0, 1), (b"two\r", 4, 2), (b"", 9, 3), (b"four", 10, 4)]
    assert bad == []


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1e", "\r"])
def test_other_line_separators_stay_inside(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "a"
    text = f"left{mark}right".encode()
    path.write_bytes(text + b"\nnext\n")
    rows, _ = lines_of(path)
    assert [raw for raw, _, _ in rows] == [text, b"next"]


@pytest.mark.usefixtures("block_bytes")
def test_long_line_is_passed_over_and_the_next_ones_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"ok\n" + b"x" * 100 + b"\nafter\n" + b"y" * 50)
    rows, bad = lines_of(path, max_bytes=10)
    assert rows == [(b"ok", 0, 1), (b"after", 104, 3)]
    assert [(b.offset, b.line, b.reason) for b in bad] == [(3, 2, "too_long"), (110, 4, "too_long")]
    assert bad[0].raw.startswith(b"x")
    assert "max_line_mb" in bad[0].error


def test_a_line_of_exactly_the_limit_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 10 + b"\n" + b"y" * 11 + b"\n")
    rows, bad = lines_of(path, max_bytes=10)
    assert [raw for raw, _, _ in rows] == [b"x" * 10]
    assert [b.line for b in bad] == [2]


@pytest.mark.usefixtures("block_bytes")
def test_byte_order_mark_is_not_part_of_the_first_record(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n")
    rows, _ = lines_of(path)
    assert rows == [(b"one", 3, 1), (b"\xef\xbb\xbftwo", 7, 2)]


def test_empty_file_has_no_record(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"")
    assert lines_of(path) == ([], [])


def test_only_a_newline_is_one_empty_line(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\n")
    assert lines_of(path)[0] == [(b"", 0, 1)]
