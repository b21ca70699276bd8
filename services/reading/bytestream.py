"""Bytes of a file as a stream of UTF-8 blocks, whatever it is compressed or encoded with.

Promises: compression is known by its magic bytes; a stream that breaks off gives everything before the break and then
says so in `ByteStream.broken`; a leading byte order mark never reaches the caller; bytes that are no text in the
declared encoding become bytes that are no UTF-8, so the record they stand in is refused later and no other.
Costs: one pass, a few blocks of memory. Formats: RFC 1952 (gzip, several members), RFC 8878 (zstd, several frames).
"""

import codecs
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import zstandard

from datamill.errors import DatamillError, nearest
from datamill.services.reading.source import Chunk

Compression = Literal["none", "gzip", "zstd"]
MAGIC: Final[dict[bytes, Compression]] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
BLOCK_BYTES: Final = 4 << 20
# Compressed input is fed in small pieces so that a block that expands a thousandfold stays small in memory.
PACKED_BYTES: Final = 64 << 10
OUTPUT_BYTES: Final = 8 << 20
BOM: Final = codecs.BOM_UTF8
MARK: Final = "datamill-mark"


def _mark_undecodable(error: UnicodeError) -> tuple[str, int]:
    """A lone surrogate, encoded with `surrogatepass`, is not UTF-8: the record is recognised as broken later."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


codecs.register_error(MARK, _mark_undecodable)


def sniff_compression(head: bytes) -> Compression:
    """Compression by the first bytes of a file."""
    return next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), "none")


def sniff_encoding(head: bytes, declared: str) -> str:
    """The codec to use: a byte order mark wins over the declared one.

    Raises:
        DatamillError: `DM-READ-006` when `declared` is no codec.
    """
    if head.startswith(BOM):
        return "utf-8"
    for mark, name in (
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark):
            return name
    try:
        return codecs.lookup(declared).name
    except LookupError as error:
        known = ("utf-8", "latin-1", "cp1252", "utf-16", "gb18030", "shift_jis", "euc-kr", "big5", "koi8-r")
        raise DatamillError(
            "DM-READ-006",
            f"there is no encoding `{declared}`",
            field="params.encoding",
            nearest=nearest(declared, known),
            expected="a Python codec name such as utf-8, latin-1, cp1252, utf-16",
        ) from error


def is_utf8(encoding: str) -> bool:
    """Whether blocks need no transcoding."""
    return codecs.lookup(encoding).name in {"utf-8", "utf-8-sig", "ascii"}


class ByteStream:
    """Decompressed UTF-8 blocks of a chunk.

    Attributes:
        offset: position of the first byte that is handed out, in the decompressed UTF-8 form of the file (3 after a
            byte order mark).
        broken: error text once the stream has broken off, else None; meaningful after iteration.
    """

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self.offset = chunk.start
        self.broken: str | None = None
        self._blocks = self._open()
        self._first = b""
        for block in self._blocks:
            self._first += block
            if len(self._first) >= len(BOM):
                break
        if chunk.start == 0 and self._first.startswith(BOM):
            self._first = self._first[len(BOM) :]
            self.offset = len(BOM)

    def __iter__(self) -> Iterator[bytes]:
        if self._first:
            yield self._first
        yield from self._blocks

    def _open(self) -> Iterator[bytes]:
        chunk = self._chunk
        if chunk.file.compression == "none":
            blocks = raw_blocks(chunk.file.path, chunk.start, chunk.end)
        else:
            blocks = self._unpacked(raw_blocks(chunk.file.path, 0, chunk.file.num_bytes, PACKED_BYTES))
        whole = _joined(blocks) if chunk.file.compression != "none" else blocks
        return whole if is_utf8(chunk.file.encoding) else _transcoded(whole, chunk.file.encoding)

    def _unpacked(self, packed: Iterator[bytes]) -> Iterator[bytes]:
        kind = self._chunk.file.compression
        unpacker = _unpacker(kind)
        started = False
        try:
            for block in packed:
                rest = block
                while rest:
                    started = True
                    out = unpacker.decompress(rest, OUTPUT_BYTES) if kind == "gzip" else unpacker.decompress(rest)
                    if out:
                        yield out
                    if unpacker.eof:
                        rest, started = unpacker.unused_data.lstrip(b"\0"), False
                        unpacker = _unpacker(kind)
                    else:
                        rest = unpacker.unconsumed_tail if kind == "gzip" else b""
        except (zlib.error, zstandard.ZstdError) as error:
            self.broken = f"the {kind} stream is damaged: {error}"
            return
        if started:
            self.broken = f"the {kind} stream ends too early; the file was probably not copied or written to its end"


def _unpacker(kind: Compression) -> Any:
    return zlib.decompressobj(31) if kind == "gzip" else zstandard.ZstdDecompressor().decompressobj()


def raw_blocks(path: Path, start: int, end: int, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Bytes `[start, end)` of a file in blocks.

    Raises:
        DatamillError: `DM-READ-003` when the file cannot be read.
    """
    try:
        with path.open("rb") as handle:
            handle.seek(start)
            left = end - start
            while left > 0 and (block := handle.read(min(size, left))):
                left -= len(block)
                yield block
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> DatamillError:
    """The error for a file that the operating system refuses."""
    return DatamillError(
        "DM-READ-003", f"cannot read the file: {error.strerror or error}", file=str(path), fix=f"ls -l {path}"
    )


def first_unpacked(packed: bytes, kind: Compression) -> bytes:
    """Decompressed beginning of a stream of which `packed` are the first bytes; empty when it is damaged."""
    try:
        return bytes(_unpacker(kind).decompress(packed[:PACKED_BYTES]))
    except (zlib.error, zstandard.ZstdError):
        return b""


def _joined(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Few large blocks instead of many small ones."""
    parts: list[bytes] = []
    size = 0
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size >= BLOCK_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


def _transcoded(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors=MARK)
    first = True
    for block in blocks:
        text = decoder.decode(block)
        if first and text:
            text, first = text.removeprefix("\ufeff"), False
        if text:
            yield text.encode("utf-8", "surrogatepass")
    if tail := decoder.decode(b"", final=True):
        yield tail.encode("utf-8", "surrogatepass")
