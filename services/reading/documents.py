"""JSON documents to raw records: an array, one object, an array under a key, a dictionary of columns.

Promises: a top-level array streams in constant memory, and an element that is broken costs only itself as long as
brackets and quotes balance. A top-level object is held in memory (up to `MAX_DOCUMENT_BYTES`) and its shape is found:
records under a key, columns, or a single record; when two keys hold records the choice is left to the user.
Costs: array scan in numpy. Source: the structural index of Langdale and Lemire, "Parsing Gigabytes of JSON per Second",
2019, section 3.1, here per block with carried state. Format: RFC 8259.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from datamill.errors import DatamillError, Issue, nearest
from datamill.services.reading.bytestream import ByteStream
from datamill.services.reading.lines import HEAD_BYTES, Positions, RecordBlock, empty_block, too_long
from datamill.services.reading.source import BadRecord, Chunk, SourceSpec

MAX_DOCUMENT_BYTES: Final = 512 << 20
CHAT_KEYS: Final = frozenset({"messages", "conversations"})
"""Keys whose array of objects is one conversation of a single record, not an array of records."""

_QUOTE, _BACKSLASH, _COMMA, _NEWLINE = (ord(mark) for mark in '"\\,\n')
_DEPTH: Final = np.zeros(256, dtype=np.int8)
_DEPTH[[ord("["), ord("{")]] = 1
_DEPTH[[ord("]"), ord("}")]] = -1
_STRUCTURAL: Final = _DEPTH != 0
_STRUCTURAL[_COMMA] = True

Bytes = npt.NDArray[np.uint8]


def read_document(spec: SourceSpec, chunk: Chunk, shapes: list[Issue] | None = None) -> Iterator[RecordBlock]:
    """Raw records of a JSON document.

    Args:
        spec: the source.
        chunk: the whole file.
        shapes: receives a note on the shape of an object.

    Raises:
        DatamillError: `DM-READ-008` for an object whose records cannot be found.
    """
    stream = ByteStream(chunk)
    blocks = iter(stream)
    head = b""
    for block in blocks:
        head += block
        if head.strip():
            break
    start = len(head) - len(head.lstrip())
    if not head.strip():
        if stream.broken:
            yield empty_block([BadRecord(stream.offset, 1, "truncated_stream", stream.broken)])
        return
    if head[start : start + 1] == b"[":
        yield from _Array(spec.max_line_bytes, stream, head, start).records(blocks)
    else:
        yield from _object_records(spec, chunk, stream, head, blocks, shapes)


@dataclass(slots=True)
class _Structure:
    """Scan state between blocks of an array."""

    in_string: bool = False
    escaped: bool = False
    depth: int = 1

    def scan(self, block: Bytes) -> tuple[Positions, bool]:
        """Positions of the separators of elements; True with the closing bracket as last position."""
        marks = np.flatnonzero(_STRUCTURAL[block])
        quotes = self._quotes(block)
        inside = (np.searchsorted(quotes, marks) + int(self.in_string)) & 1
        marks = marks[inside == 0]
        depths = self.depth + np.cumsum(_DEPTH[block[marks]], dtype=np.int64)
        self.in_string = bool((len(quotes) + int(self.in_string)) & 1)
        closing = np.flatnonzero(depths == 0)
        if len(closing):
            marks, depths = marks[: closing[0] + 1], depths[: closing[0] + 1]
        ends = marks[((block[marks] == _COMMA) & (depths == 1)) | (depths == 0)]
        if len(depths):
            self.depth = int(depths[-1])
        return ends, bool(len(closing))

    def _quotes(self, block: Bytes) -> Positions:
        """Positions of quotes that no backslash escapes."""
        quotes: Positions = np.flatnonzero(block == _QUOTE)
        slashes = np.flatnonzero(block == _BACKSLASH)
        escaped = np.zeros(0, dtype=np.int64) if not self.escaped else np.zeros(1, dtype=np.int64)
        if len(slashes):
            # A run of backslashes escapes the byte after it when its length is odd. An escape carried over from the
            # last block makes the first backslash of a run at position 0 an escaped character.
            breaks = np.flatnonzero(np.diff(slashes) != 1)
            firsts = slashes[np.concatenate(([0], breaks + 1))]
            lasts = slashes[np.concatenate((breaks, [len(slashes) - 1]))]
            lengths = lasts - firsts + 1
            if self.escaped and firsts[0] == 0:
                lengths[0] -= 1
            escaped = np.concatenate((escaped, lasts[lengths % 2 == 1] + 1))
        self.escaped = bool(len(escaped)) and int(escaped[-1]) == len(block)
        return quotes if not len(escaped) else quotes[~np.isin(quotes, escaped)]


class _Array:
    """Elements of a top-level array."""

    def __init__(self, max_bytes: int, stream: ByteStream, head: bytes, start: int) -> None:
        self._max_bytes = max_bytes
        self._stream = stream
        self._data = head[start + 1 :]
        self._offset = stream.offset + start + 1
        self._line = 1 + head.count(b"\n", 0, start)
        self._structure = _Structure()
        self._carry = b""
        self._over: BadRecord | None = None
        self._first = True

    def records(self, blocks: Iterator[bytes]) -> Iterator[RecordBlock]:
        """Blocks of elements, the last one with the complaints about the end of the document."""
        data, closed = self._data, False
        while True:
            ends, closed = self._structure.scan(np.frombuffer(data, dtype=np.uint8))
            rest = b""
            if closed:
                rest = data[int(ends[-1]) + 1 :]
            block = self._cut(data, ends, closed=closed)
            yield block
            if closed:
                yield from self._after(rest, blocks)
                return
            following = next(blocks, None)
            if following is None:
                break
            data = following
        reason = "truncated_stream" if self._stream.broken else "invalid_json"
        error = self._stream.broken or "the document ends inside the array"
        yield empty_block([BadRecord(self._offset, self._line, reason, error, self._carry[:HEAD_BYTES])])

    def _cut(self, data: bytes, ends: Positions, *, closed: bool) -> RecordBlock:
        whole = self._carry + data
        raws: list[bytes] = []
        starts: list[int] = []
        bad: list[BadRecord] = []
        begin = 0
        for number, end in enumerate(ends.tolist()):
            stop = end + len(self._carry)
            element = whole[begin:stop].strip()
            last = closed and number == len(ends) - 1
            if self._over is not None:
                bad.append(self._over)
                self._over = None
            elif not (last and self._first and not element):
                raws.append(element)
                starts.append(begin + _leading_blank(whole, begin, stop))
            self._first = False
            begin = stop + 1
        newlines = np.flatnonzero(np.frombuffer(whole, dtype=np.uint8) == _NEWLINE)
        positions = np.array(starts, dtype=np.int64)
        lines = self._line + np.searchsorted(newlines, positions)
        block = RecordBlock(raws, self._offset + positions, lines.astype(np.int64), whole, bad)
        self._keep(whole, begin, int(np.searchsorted(newlines, begin)))
        return self._limited(block)

    def _keep(self, whole: bytes, begin: int, num_newlines: int) -> None:
        self._line += num_newlines
        self._carry = whole[begin:]
        self._offset += begin
        if self._over is not None or len(self._carry) > self._max_bytes:
            lead = _leading_blank(self._carry, 0, len(self._carry))
            line = self._line + self._carry.count(b"\n", 0, lead)
            head = self._carry[lead : lead + HEAD_BYTES]
            self._over = self._over or too_long(self._offset + lead, line, head, self._max_bytes)
            self._line += self._carry.count(b"\n")
            self._offset += len(self._carry)
            self._carry = b""

    def _limited(self, block: RecordBlock) -> RecordBlock:
        over = {i for i, raw in enumerate(block.raws) if len(raw) > self._max_bytes}
        if not over:
            return block
        block.bad += [
            too_long(int(block.offsets[i]), int(block.lines[i]), block.raws[i], self._max_bytes) for i in sorted(over)
        ]
        keep = [i for i in range(len(block.raws)) if i not in over]
        return RecordBlock([block.raws[i] for i in keep], block.offsets[keep], block.lines[keep], block.text, block.bad)

    def _after(self, rest: bytes, blocks: Iterator[bytes]) -> Iterator[RecordBlock]:
        text = rest + b"".join(blocks)
        if text.strip() or self._stream.broken:
            reason = "truncated_stream" if self._stream.broken else "invalid_json"
            error = self._stream.broken or "text follows the end of the array"
            lead = _leading_blank(text, 0, len(text))
            line = self._line + text.count(b"\n", 0, lead)
            yield empty_block([BadRecord(self._offset + lead, line, reason, error, text[lead : lead + HEAD_BYTES])])


def _leading_blank(data: bytes, begin: int, stop: int) -> int:
    at = begin
    while at < stop and data[at] in b" \t\r\n":
        at += 1
    return at - begin


@dataclass(slots=True)
class _Member:
    key: str
    start: int
    end: int
    value: Any = field(repr=False)


def _object_records(
    spec: SourceSpec, chunk: Chunk, stream: ByteStream, head: bytes, blocks: Iterator[bytes], shapes: list[Issue] | None
) -> Iterator[RecordBlock]:
    parts, size = [head], len(head)
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > MAX_DOCUMENT_BYTES:
            raise _shape_error(chunk, "the object is too large to hold in memory", "convert it to JSON Lines")
    data = b"".join(parts)
    if stream.broken:
        yield empty_block([BadRecord(stream.offset, 1, "truncated_stream", stream.broken, data[:HEAD_BYTES])])
        return
    text = data.decode("utf-8", "surrogateescape")
    try:
        members = _members(text)
    except (ValueError, RecursionError) as error:
        yield empty_block([BadRecord(stream.offset, 1, "invalid_json", str(error), data.strip()[:HEAD_BYTES])])
        return
    yield from _shaped(spec, chunk, stream.offset, text, members, shapes if shapes is not None else [])


def _shaped(
    spec: SourceSpec, chunk: Chunk, base: int, text: str, members: list[_Member], shapes: list[Issue]
) -> Iterator[RecordBlock]:
    by_key = {member.key: member for member in members}
    key = spec.records or _records_key(chunk, members)
    if key is not None:
        if key not in by_key or not isinstance(by_key[key].value, list):
            raise _shape_error(chunk, f"there is no array under the key `{key}`", None, near=nearest(key, by_key))
        others = ", ".join(member.key for member in members if member.key != key)
        more = f"; not read: {others}" if others else ""
        shapes.append(_shape_note(chunk, f"records are read from the array under `{key}`{more}"))
        yield _block_of(text, base, _elements(text, by_key[key].start))
    elif rows := _column_rows(text, members):
        shapes.append(_shape_note(chunk, f"read as a dictionary of {len(members)} columns with {len(rows)} rows"))
        positions = np.arange(len(rows), dtype=np.int64)
        raws = [row.encode("utf-8", "surrogateescape") for row in rows]
        yield RecordBlock(raws, base + positions, positions + 1, b"\n".join(raws))
    else:
        empty = [member.key for member in members if member.value == []]
        if empty:
            more = f"the array under `{empty[0]}` is empty; set options.records: {empty[0]} to read its rows, now none"
            shapes.append(_shape_note(chunk, f"the object is read as one row: {more}"))
        start = len(text) - len(text.lstrip())
        yield _block_of(text, base, [(start, len(text.rstrip()))])


def _records_key(chunk: Chunk, members: Sequence[_Member]) -> str | None:
    found = [m.key for m in members if _is_records(m.value) and m.key not in CHAT_KEYS]
    if len(found) > 1:
        raise _shape_error(
            chunk,
            f"records stand under several keys: {', '.join(found)}",
            f"set params.records, e.g. records: {found[0]}",
        )
    return found[0] if found else None


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _column_rows(text: str, members: Sequence[_Member]) -> list[str]:
    """JSON text of each row when every member is a column of the same length (or with the same row keys)."""
    values = [member.value for member in members]
    if not values or any(member.key in CHAT_KEYS and _is_records(member.value) for member in members):
        return []
    if all(isinstance(value, list) for value in values) and len({len(value) for value in values}) == 1:
        parts = [[text[start:end] for start, end in _elements(text, member.start)] for member in members]
    elif all(isinstance(value, dict) and value for value in values) and len({tuple(value) for value in values}) == 1:
        if not all(key.isdigit() for key in values[0]):
            return []
        parts = [[text[m.start : m.end] for m in _members(text, member.start)] for member in members]
    else:
        return []
    keys = [json.dumps(member.key, ensure_ascii=False) for member in members]
    return [
        "{" + ", ".join(f"{key}: {cell}" for key, cell in zip(keys, row, strict=True)) + "}"
        for row in zip(*parts, strict=True)
    ]


_DECODER: Final = json.JSONDecoder(parse_int=len)


def _members(text: str, at: int = 0) -> list[_Member]:
    """Members of the object that begins at `at` (after blanks).

    Raises:
        ValueError: when it is no JSON object, or (for the document) text follows it.
    """
    whole = at == 0
    at = _blank(text, at)
    if text[at : at + 1] != "{":
        raise ValueError("the document is neither an array nor an object")
    members: list[_Member] = []
    at = _blank(text, at + 1)
    while text[at : at + 1] == '"':
        key, at = _DECODER.raw_decode(text, at)
        at = _blank(text, at)
        if text[at : at + 1] != ":":
            raise ValueError(f"':' expected after the key {key!r}")
        start = _blank(text, at + 1)
        value, end = _DECODER.raw_decode(text, start)
        members.append(_Member(key, start, end, value))
        at = _blank(text, end)
        if text[at : at + 1] != ",":
            break
        at = _blank(text, at + 1)
    if text[at : at + 1] != "}":
        raise ValueError(f"the object does not end properly (character {at})")
    if whole and text[at + 1 :].strip():
        raise ValueError(f"text follows the end of the object (character {at + 1})")
    return members


def _elements(text: str, at: int) -> list[tuple[int, int]]:
    """Start and end of each element of the (valid) array that begins at `at`."""
    spans = []
    at = _blank(text, at + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        spans.append((at, end))
        at = _blank(text, end)
        if text[at] == ",":
            at = _blank(text, at + 1)
    return spans


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n\r":
        at += 1
    return at


def _block_of(text: str, base: int, spans: list[tuple[int, int]]) -> RecordBlock:
    """Records of spans of the text, with byte offsets and line numbers."""
    raws, offsets, lines = [], [], []
    at, offset, line = 0, base, 1
    for start, end in spans:
        between = text[at:start]
        offset += len(between.encode("utf-8", "surrogateescape"))
        line += between.count("\n")
        raw = text[start:end].encode("utf-8", "surrogateescape")
        raws.append(raw)
        offsets.append(offset)
        lines.append(line)
        at, offset, line = end, offset + len(raw), line + raw.count(b"\n")
    joined = b"\n".join(raws)
    return RecordBlock(raws, np.array(offsets, dtype=np.int64), np.array(lines, dtype=np.int64), joined)


def _shape_note(chunk: Chunk, message: str) -> Issue:
    return Issue("DM-READ-106", message, severity="note", file=chunk.file.display)


def _shape_error(chunk: Chunk, message: str, fix: str | None, near: str | None = None) -> DatamillError:
    return DatamillError(
        "DM-READ-008",
        message,
        file=chunk.file.display,
        nearest=near,
        expected="an array of objects, one object, an array under one key, or a dictionary of columns",
        fix=fix,
    )
