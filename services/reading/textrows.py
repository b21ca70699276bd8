r"""Plain text to rows of one column `text`: a line, a paragraph or the whole file each.

Promises: line breaks inside a row stay as written; a blank line is never a row; a paragraph is a run of lines that
are not blank. The text of a whole file loses nothing but the newline at its end.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from datamill.services.reading.blocks import Block
from datamill.services.reading.bytestream import ByteStream
from datamill.services.reading.lines import HEAD_BYTES, RecordBlock, split_lines, too_long
from datamill.services.reading.source import BadRecord, Chunk, SourceSpec

COLUMN: Final = "text"


def read_text(spec: SourceSpec, chunk: Chunk) -> Iterator[Block]:
    """Blocks of text rows."""
    stream = ByteStream(chunk)
    lines = split_lines(stream, chunk.first_line, spec.max_line_bytes)
    if spec.unit == "line":
        for block in lines:
            yield text_block([raw.removesuffix(b"\r") for raw in block.raws], block)
        return
    yield from _joined(lines, spec)


def text_block(raws: list[bytes], records: RecordBlock) -> Block:
    """Rows of the records that are not blank; those that are not UTF-8 are refused."""
    offsets, lines = records.offsets, records.lines
    filled = [index for index, raw in enumerate(raws) if raw and not raw.isspace()]
    num_blank = len(raws) - len(filled)
    if num_blank:
        raws, offsets, lines = [raws[i] for i in filled], offsets[filled], lines[filled]
    bad = list(records.bad)
    try:
        texts = pa.array(raws, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        wrong = {i: error for i, raw in enumerate(raws) if (error := encoding_error(raw))}
        bad += [
            BadRecord(int(offsets[i]), int(lines[i]), "invalid_encoding", error, raws[i][:HEAD_BYTES])
            for i, error in wrong.items()
        ]
        right = [i for i in range(len(raws)) if i not in wrong]
        offsets, lines = offsets[right], lines[right]
        texts = pa.array([raws[i] for i in right], pa.binary()).cast(pa.string())
    return Block({COLUMN: texts}, offsets, lines, None, bad, [], num_blank)


def encoding_error(raw: bytes) -> str | None:
    """Why bytes are not UTF-8, or None."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"byte {error.start} of the record: {error.reason}"
    return None


def _joined(blocks: Iterator[RecordBlock], spec: SourceSpec) -> Iterator[Block]:
    """Paragraphs, or one row per file, from lines."""
    whole = spec.unit == "whole"
    group = _Group(spec.max_line_bytes)
    for block in blocks:
        done: list[tuple[bytes, int, int]] = []
        bad = list(block.bad)
        num_blank = 0
        for raw, offset, line in zip(block.raws, block.offsets.tolist(), block.lines.tolist(), strict=True):
            if whole or (raw and not raw.isspace()):
                group.add(raw, offset, line)
            else:
                num_blank += 1
                group.close(done, bad)
        if whole and bad:
            group.refuse()
        yield _as_block(done, bad, num_blank)
    done, bad = [], []
    group.close(done, bad, whole=whole)
    yield _as_block(done, bad, 0)


class _Group:
    """Lines that belong to one row."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._lines: list[bytes] = []
        self._start = (0, 0)
        self._size = 0
        self._refused = False

    def add(self, raw: bytes, offset: int, line: int) -> None:
        """Take in the next line; above the limit only the size is kept."""
        if self._refused:
            return
        if not self._size:
            self._start = (offset, line)
        self._size += len(raw) + 1
        if self._size - 1 <= self._max or not self._lines:
            self._lines.append(raw)

    def refuse(self) -> None:
        """A part of the row was refused already: no row is made of the rest, now or later."""
        self._refused = True
        self._lines, self._size = [], 0

    def close(self, done: list[tuple[bytes, int, int]], bad: list[BadRecord], *, whole: bool = False) -> None:
        """End the row."""
        if not self._size:
            return
        if self._size - 1 > self._max:
            bad.append(too_long(*self._start, self._lines[0], self._max))
        else:
            text = b"\n".join(self._lines)
            done.append((text if whole else text.removesuffix(b"\r"), *self._start))
        self._lines, self._size = [], 0


def _as_block(done: list[tuple[bytes, int, int]], bad: list[BadRecord], num_blank: int) -> Block:
    offsets = np.array([offset for _, offset, _ in done], dtype=np.int64)
    lines = np.array([line for _, _, line in done], dtype=np.int64)
    raws = [raw for raw, _, _ in done]
    block = text_block(raws, RecordBlock(raws, offsets, lines, b"", bad))
    block.num_blank += num_blank
    return block
