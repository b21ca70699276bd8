"""Compression by content, encodings, byte order marks, and streams that break off."""

import gzip
import random
from pathlib import Path

import pytest
import zstandard
from support.reading import codes, data_rows, read_bytes, refused

from datamill.errors import DatamillError
from datamill.services.reading.bytestream import sniff_compression, sniff_encoding

ROWS = [{"n": i, "t": f"naïve 水 {i}"} for i in range(200)]
PLAIN = "".join(f'{{"n":{row["n"]},"t":"{row["t"]}"}}\n' for row in ROWS).encode()


def packed_zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize(
    ("name", "data", "disagrees"),
    [
        ("in.jsonl", PLAIN, False),
        ("in.jsonl.gz", gzip.compress(PLAIN), False),
        ("in.jsonl.zst", packed_zstd(PLAIN), False),
        ("in.jsonl", gzip.compress(PLAIN), True),
        ("in.jsonl.gz", PLAIN, True),
        ("in.jsonl.gz", packed_zstd(PLAIN), True),
        ("in.jsonl.gz", gzip.compress(PLAIN[:500]) + gzip.compress(PLAIN[500:]), False),
        ("in.jsonl.gz", gzip.compress(PLAIN) + b"\0" * 512, False),
        ("in.jsonl.zst", packed_zstd(PLAIN[:500]) + packed_zstd(PLAIN[500:]), False),
    ],
)
def test_compression_is_found_by_content(name: str, data: bytes, disagrees: bool) -> None:
    table = read_bytes(data, name)
    assert data_rows(table) == ROWS
    assert (codes(table) == ["DM-READ-101"]) is disagrees
    assert refused(table) == []


def test_offsets_and_ids_are_those_of_the_decompressed_text() -> None:
    plain, packed = read_bytes(PLAIN), read_bytes(gzip.compress(PLAIN))
    assert packed.rows["_ord"] == plain.rows["_ord"]
    assert packed.rows["_id"] == plain.rows["_id"]


@pytest.mark.parametrize("pack", [gzip.compress, packed_zstd])
def test_a_stream_that_breaks_off_gives_what_came_before(pack: object) -> None:
    noise = random.Random(0)
    rows = [{"t": noise.randbytes(600).hex()} for _ in range(600)]
    data = pack("".join(f'{{"t":"{row["t"]}"}}\n' for row in rows).encode())  # type: ignore[operator]
    table = read_bytes(data[: len(data) * 3 // 4])
    got = data_rows(table)
    assert 200 < len(got) < 600
    assert got == rows[: len(got)]
    assert [reason for reason, _, _ in refused(table)] == ["truncated_stream"]
    assert f"in.jsonl:{len(got) + 1}" in table.fates["src"].to_pylist()


def test_a_damaged_stream_is_refused_not_a_crash() -> None:
    data = bytearray(gzip.compress(PLAIN * 50))
    data[len(data) // 2] ^= 0xFF
    table = read_bytes(bytes(data))
    assert "truncated_stream" in [reason for reason, _, _ in refused(table)]


def test_a_truncated_stream_does_not_pass_for_a_whole_csv_or_text() -> None:
    data = gzip.compress(b"a,b\n1,2\n3,4")[:-12]
    assert [reason for reason, _, _ in refused(read_bytes(data, "in.csv.gz"))] == ["truncated_stream"]
    assert [reason for reason, _, _ in refused(read_bytes(data, "in.txt.gz"))] == ["truncated_stream"]
    assert [reason for reason, _, _ in refused(read_bytes(data, "in.txt.gz", unit="whole"))] == ["truncated_stream"]


def test_a_truncated_document() -> None:
    data = gzip.compress(b'[{"a":1},{"a":2},{"a":3}]')[:-10]
    assert [reason for reason, _, _ in refused(read_bytes(data, "in.json.gz"))] == ["truncated_stream"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "gb18030", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_declared_encodings(encoding: str, mark: str) -> None:
    table = read_bytes((mark + PLAIN.decode()).encode(encoding), encoding=encoding)
    assert data_rows(table)[:3] == ROWS[:3]
    assert table.rows.num_rows == len(ROWS)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_single_byte_encodings(encoding: str) -> None:
    assert data_rows(read_bytes('{"a":"naïve"}\n'.encode(encoding), encoding=encoding)) == [{"a": "naïve"}]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_wide_byte_order_marks_win_over_the_default(encoding: str) -> None:
    table = read_bytes(PLAIN.decode().encode(encoding))
    assert data_rows(table) == ROWS
    assert codes(table) == ["DM-READ-108"]


def test_the_wrong_encoding_costs_the_records_it_breaks() -> None:
    table = read_bytes('{"a":"ok"}\n{"a":"naïve"}\n'.encode("latin-1"))
    assert data_rows(table) == [{"a": "ok"}]
    assert refused(table) == [("invalid_encoding", "in.jsonl:2", 11)]


def test_bytes_that_the_codec_does_not_know_cost_their_record() -> None:
    table = read_bytes(b'{"a":"ok"}\n{"a":"\x81"}\n{"a":"\x80"}\n', encoding="cp1252")
    assert data_rows(table) == [{"a": "ok"}, {"a": "€"}]
    assert [(reason, src) for reason, src, _ in refused(table)] == [("invalid_encoding", "in.jsonl:2")]


def test_unknown_encoding_names_the_nearest() -> None:
    with pytest.raises(DatamillError) as caught:
        sniff_encoding(b"", "utf8x")
    assert caught.value.code == "DM-READ-006"
    assert caught.value.issues[0].nearest == "utf-8"


@pytest.mark.parametrize(
    ("head", "kind"), [(b"", "none"), (b"{", "none"), (b"\x1f\x8b\x08", "gzip"), (b"\x1f", "none")]
)
def test_sniff_compression(head: bytes, kind: str) -> None:
    assert sniff_compression(head) == kind


def test_an_unreadable_file_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datamill.services.reading.bytestream import raw_blocks

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DatamillError, match="Permission denied") as caught:
        list(raw_blocks(tmp_path / "a", 0, 1))
    assert caught.value.code == "DM-READ-003"
