r"""CSV and TSV to text columns, after RFC 4180, without guessing a type.

Promises: fields keep their text (`007`, `NA`, `null` stay as they are); an empty field is null and a quoted empty
field (`""`) is the empty string; quoted fields may hold separators, quotes and line breaks. A quote that opens a field
and never closes properly costs only the line it stands on, not the rest of the file. A quote inside an unquoted field
is text. Costs: `bytes.split` for lines without quotes, a scan per quoted field otherwise; memory of one block.
"""

import re
from collections import deque
from collections.abc import Generator, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from datamill.errors import DatamillError
from datamill.services.reading.blocks import Block
from datamill.services.reading.bytestream import ByteStream
from datamill.services.reading.lines import HEAD_BYTES, RecordBlock, split_lines
from datamill.services.reading.source import BadRecord, Chunk, SourceSpec
from datamill.services.reading.textrows import encoding_error

Fields = list[bytes | None]
SEPARATORS: Final = (b",", b"\t", b";", b"|")


class UnbalancedQuoteError(ValueError):
    """A quoted field that does not end as it should."""


class QuoteScanner:
    """Fields of one record, fed line by line until its quotes are closed."""

    def __init__(self, delimiter: bytes, quote: bytes) -> None:
        self._delimiter = delimiter
        self._quote = quote
        self._double = quote * 2
        self._inside = re.compile(b"[^%b]*(?:%b%b[^%b]*)*" % ((re.escape(quote),) * 4))
        self._fields: Fields = []
        self._open: list[bytes] | None = None

    def feed(self, raw: bytes) -> Fields | None:
        """Take the next line; the fields once the record is complete, else None.

        Raises:
            UnbalancedQuoteError: text follows a closing quote.
        """
        at = 0
        if self._open is not None:
            at = self._close(raw, 0)
            if at < 0:
                return None
            if at >= len(raw) or raw[at:] == b"\r":
                return self._fields
            at += 1
        while True:
            if raw.startswith(self._quote, at):
                self._open = []
                at = self._close(raw, at + 1)
                if at < 0:
                    return None
            else:
                end = raw.find(self._delimiter, at)
                last = end < 0
                field = raw[at:].removesuffix(b"\r") if last else raw[at:end]
                self._fields.append(field or None)
                at = len(raw) if last else end
            if at >= len(raw) or raw[at:] == b"\r":
                return self._fields
            at += 1

    def _close(self, raw: bytes, at: int) -> int:
        """Position after the closing quote, -1 when the line ends inside the field."""
        assert self._open is not None
        match = self._inside.match(raw, at)
        assert match is not None
        self._open.append(match.group().replace(self._double, self._quote))
        end = match.end()
        if end >= len(raw):
            return -1
        end += 1
        if end < len(raw) and not raw.startswith(self._delimiter, end) and raw[end:] != b"\r":
            raise UnbalancedQuoteError(f"text follows a closing quote at byte {end} of the line")
        self._fields.append(b"\n".join(self._open))
        self._open = None
        return end


class CsvReader:
    """Records of one CSV file."""

    def __init__(self, spec: SourceSpec, delimiter: bytes) -> None:
        self._delimiter = delimiter
        self._quote = spec.quote.encode()
        self._max_bytes = spec.max_line_bytes
        self._waiting: deque[tuple[bytes, int, int]] = deque()
        self._scanner: QuoteScanner | None = None
        self._size = 0
        self.records: list[tuple[Fields, int, int]] = []
        self.bad: list[BadRecord] = []
        self.num_blank = 0

    def feed(self, block: RecordBlock) -> None:
        """Take the next lines."""
        self.bad.extend(block.bad)
        todo = deque(zip(block.raws, block.offsets.tolist(), block.lines.tolist(), strict=True))
        while todo:
            self._line(todo)

    def finish(self) -> None:
        """The file ends: an open quote costs its line, what follows is read again."""
        while self._waiting:
            todo: deque[tuple[bytes, int, int]] = deque()
            self._give_up(todo, "the quote is never closed")
            while todo:
                self._line(todo)

    def _line(self, todo: deque[tuple[bytes, int, int]]) -> None:
        line = todo.popleft()
        raw = line[0]
        if self._scanner is None and self._quote not in raw:
            if not raw or raw.isspace():
                self.num_blank += 1
            else:
                fields = raw.removesuffix(b"\r").split(self._delimiter)
                self.records.append(([field or None for field in fields], line[1], line[2]))
            return
        self._waiting.append(line)
        self._size += len(raw) + 1
        self._scanner = self._scanner or QuoteScanner(self._delimiter, self._quote)
        try:
            done = self._scanner.feed(raw)
        except UnbalancedQuoteError as error:
            self._give_up(todo, str(error))
            return
        if done is not None:
            _, offset, number = self._waiting[0]
            self.records.append((done, offset, number))
            self._reset()
        elif self._size > self._max_bytes:
            self._give_up(todo, "the quote is not closed within max_line_mb")

    def _give_up(self, todo: deque[tuple[bytes, int, int]], error: str) -> None:
        raw, offset, number = self._waiting.popleft()
        self.bad.append(BadRecord(offset, number, "unbalanced_quote", error, raw[:HEAD_BYTES]))
        todo.extendleft(reversed(self._waiting))
        self._reset()

    def _reset(self) -> None:
        self._waiting.clear()
        self._scanner = None
        self._size = 0


def read_csv(spec: SourceSpec, chunk: Chunk) -> Iterator[Block]:
    """Blocks of rows of a CSV or TSV file."""
    stream = ByteStream(chunk)
    reader: CsvReader | None = None
    names: list[str] | None = None
    for lines in split_lines(stream, chunk.first_line, spec.max_line_bytes):
        if reader is None:
            reader = CsvReader(spec, find_delimiter(spec, chunk.file.format, first_line(lines)))
        reader.feed(lines)
        names = yield from _flush(reader, names, spec)
    if reader is not None:
        reader.finish()
        yield from _flush(reader, names, spec)


def first_line(lines: RecordBlock) -> bytes:
    """The first line that is not blank."""
    return next((raw for raw in lines.raws if raw.strip()), b"")


def find_delimiter(spec: SourceSpec, format_name: str, header: bytes) -> bytes:
    """The declared separator, a tab for TSV, else the one that stands most often in the header outside quotes.

    Raises:
        DatamillError: `DM-READ-013` for a separator or quote that is not one ASCII character.
    """
    for name, value in (("delimiter", spec.delimiter), ("quote", spec.quote)):
        if value is not None and (len(value) != 1 or not value.isascii() or value in "\r\n"):
            raise DatamillError(
                "DM-READ-013", f"`{name}` is {value!r}", field=f"params.{name}", expected="one ASCII character"
            )
    if spec.delimiter is not None:
        return spec.delimiter.encode()
    if format_name == "tsv":
        return b"\t"
    quote = re.escape(spec.quote.encode())
    bare = re.sub(quote + b"[^" + quote + b"]*" + quote, b"", header)
    return max(SEPARATORS, key=lambda mark: (bare.count(mark), -SEPARATORS.index(mark)))


def column_names(header: Fields) -> list[str]:
    """Names from a header record: unnamed columns are numbered, repeated names get `_2`, `_3`, ..."""
    names: list[str] = []
    for index, field in enumerate(header):
        base = (field or b"").decode("utf-8", "replace").strip() or f"column_{index + 1}"
        name, count = base, 1
        while name in names:
            count += 1
            name = f"{base}_{count}"
        names.append(name)
    return names


def _flush(reader: CsvReader, names: list[str] | None, spec: SourceSpec) -> Generator[Block, None, list[str] | None]:
    records, bad, num_blank = reader.records, reader.bad, reader.num_blank
    reader.records, reader.bad, reader.num_blank = [], [], 0
    if names is None and records:
        if spec.header:
            names = column_names(records.pop(0)[0])
        else:
            names = [f"column_{index + 1}" for index in range(len(records[0][0]))]
    if records or bad or num_blank or names is not None:
        yield _block(records, names or [], bad, num_blank)
    return names


def _block(records: list[tuple[Fields, int, int]], names: list[str], bad: list[BadRecord], num_blank: int) -> Block:
    right = [record for record in records if len(record[0]) == len(names)]
    if len(right) < len(records):
        for fields, offset, number in records:
            if len(fields) != len(names):
                error = f"{len(fields)} fields where the header has {len(names)}"
                head = b",".join(field or b"" for field in fields)[:HEAD_BYTES]
                bad.append(BadRecord(offset, number, "wrong_field_count", error, head))
    try:
        columns = _columns(right, names)
    except pa.ArrowInvalid:
        right = _decodable(right, bad)
        columns = _columns(right, names)
    offsets = np.array([offset for _, offset, _ in right], dtype=np.int64)
    numbers = np.array([number for _, _, number in right], dtype=np.int64)
    return Block(columns, offsets, numbers, None, bad, [], num_blank)


def _columns(records: list[tuple[Fields, int, int]], names: list[str]) -> dict[str, pa.Array]:
    values = list(zip(*(fields for fields, _, _ in records), strict=True)) or [()] * len(names)
    return {name: pa.array(column, pa.binary()).cast(pa.string()) for name, column in zip(names, values, strict=True)}


def _decodable(records: list[tuple[Fields, int, int]], bad: list[BadRecord]) -> list[tuple[Fields, int, int]]:
    right = []
    for record in records:
        error = next((e for field in record[0] if field and (e := encoding_error(field))), None)
        if error is None:
            right.append(record)
        else:
            head = b",".join(field or b"" for field in record[0])[:HEAD_BYTES]
            bad.append(BadRecord(record[1], record[2], "invalid_encoding", error, head))
    return right
