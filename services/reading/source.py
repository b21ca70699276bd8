"""What reading is asked for and what it hands out: sources, files, chunks, batches.

A `SourceSpec` names files and how to read them. `resolve_files` (in `files`) turns it into `FileEntry`s, `plan_chunks`
(in `reader`) into `Chunk`s: deterministic byte ranges that any worker can read alone. All values here are frozen,
picklable and free of file handles.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

Format = Literal["jsonl", "json", "csv", "tsv", "parquet", "txt"]
FORMATS: Final[tuple[Format, ...]] = ("jsonl", "json", "csv", "tsv", "parquet", "txt")

CHUNK_BYTES: Final = 32 << 20
BATCH_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """One input of a workflow.

    Attributes:
        name: name of the input; part of every row's `_id`.
        path: file, folder or glob, relative to `root` or absolute.
        root: project folder.
        format: format of the files; found per file from content and name when None.
        on_bad_row: `quarantine` puts a broken record aside, `fail` stops at the first one.
        max_bad: share of records, in [0, 1], that may be quarantined before the source is refused.
        max_line_mb: size in MiB above which a record is quarantined instead of held in memory.
        encoding: Python codec name of text files; a UTF-8 or UTF-16 byte order mark is always honoured.
        delimiter: CSV field separator, one ASCII character; found from the header line when None.
        quote: CSV quote character.
        header: whether the first CSV record names the columns (else `column_1`, ...).
        unit: what one row of a text file is.
        records: key of the array of records inside a JSON document.
        columns: columns to keep; all when None.
        cast: column to type (`string`, `int64`, `double`, `bool`, `json`) for columns that shall not keep theirs.
        shard_rows: most rows in one batch.
        chunk_bytes: size at which plain newline formats are cut; never changes rows or ids.
    """

    name: str
    path: str
    root: Path = Path()
    format: Format | None = None
    on_bad_row: Literal["quarantine", "fail"] = "quarantine"
    max_bad: float = 0.01
    max_line_mb: float = 64
    encoding: str = "utf-8"
    delimiter: str | None = None
    quote: str = '"'
    header: bool = True
    unit: Literal["line", "paragraph", "whole"] = "line"
    records: str | None = None
    columns: tuple[str, ...] | None = None
    cast: Mapping[str, str] = field(default_factory=dict)
    shard_rows: int = 5000
    chunk_bytes: int = CHUNK_BYTES

    @property
    def max_line_bytes(self) -> int:
        """Size limit of one record in bytes."""
        return int(self.max_line_mb * (1 << 20))


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a source after a look at its first bytes.

    Attributes:
        path: where it is.
        relative: name that identifies it inside the source (part of `_id`), with `/`.
        display: name for people (part of `_src`).
        index: consecutive number in name order (part of `_ord`).
        format: format it is read as.
        compression: `none`, `gzip` or `zstd`, by content.
        encoding: codec it is read with.
        num_bytes: size on disk.
    """

    path: Path
    relative: str
    display: str
    index: int
    format: Format
    compression: Literal["none", "gzip", "zstd"] = "none"
    encoding: str = "utf-8"
    num_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file that is read alone.

    Attributes:
        file: the file.
        start: first byte on disk (row group number for Parquet).
        end: one past the last byte on disk (row group number for Parquet).
        first_line: 1-based number of the line at `start` (of the row, for Parquet).
        num_newlines: newline bytes on disk inside the chunk; an upper estimate of rows for plain line formats.
        digest: xxh3-128 of the raw bytes, 32 hex digits (of the whole file and the row group, for Parquet).
    """

    file: FileEntry
    start: int
    end: int
    first_line: int
    num_newlines: int
    digest: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows and fates read from a chunk.

    Attributes:
        rows: `_id`, `_ord`, `_src` and the data columns, in input order.
        fates: in `FATE_SCHEMA`: `quarantined` records and `noted` remarks on rows that stay.
        num_blank: blank lines passed over; they are not records.
        num_bad: quarantined records among `fates`.
    """

    rows: pa.Table
    fates: pa.Table
    num_blank: int = 0
    num_bad: int = 0


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that cannot become a row: position, reason slug, error text and the head of its bytes."""

    offset: int
    line: int
    reason: str
    error: str
    raw: bytes = b""
    record: str | None = None
    """Id of the row when it was already known (a failed cast)."""


REASONS: Final = (
    "invalid_json",
    "not_an_object",
    "invalid_encoding",
    "too_long",
    "too_deep",
    "truncated_stream",
    "unbalanced_quote",
    "wrong_field_count",
    "type_mismatch",
    "repaired_surrogate",
    "duplicate_key",
    "nonstandard_number",
    "stray_bom",
)
"""Every reason slug that reading puts into a fate; the last four are remarks on rows that stay."""
