"""Writes tables to a file: whole or not at all, and the same bytes for the same rows however they were cut.

Text is UTF-8 and never escaped; columns that hold JSON text (`datamill.dtype: json`) are written as the values they
stand for. Parquet row groups have a fixed number of rows, gzip carries no time. Cost: one pass and one re-read for
the sha256; memory of one row group.
"""

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from datamill.errors import DatamillError, ExitCode, nearest
from datamill.services.reading.columns import DTYPE_KEY
from datamill.services.storage.atomic import atomic_path

Format = Literal["jsonl", "json", "parquet", "csv"]
ROW_GROUP: Final = 10_000
POINT: Final = "output"
_BLOCK: Final = 1 << 22
_SUFFIXES: Final = {".gz": "gz", ".zst": "zst"}


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that was written.

    Attributes:
        path: final path.
        rows: records in it.
        bytes: size.
        sha256: digest of its bytes.
    """

    path: Path
    rows: int
    bytes: int
    sha256: str


def write_rows(
    tables: Iterable[pa.Table],
    path: Path,
    format: str,  # noqa: A002  the word of the workflow file
    *,
    name: str = "data",
    protect: Sequence[Path] = (),
    compress: Literal["gz", "zst"] | None = None,
) -> WrittenFile:
    """Write all rows of `tables` to `path`.

    Args:
        tables: tables of one schema, in order.
        path: target; an existing folder gets `<name>.<format>`.
        format: `jsonl`, `json`, `parquet` or `csv`.
        name: file name inside a folder.
        protect: files that must not be replaced, such as the inputs.
        compress: of text formats; by default what the suffix of `path` says.

    Raises:
        DatamillError: `DM-OPB-010` for an unknown format, `DM-OPB-011` when `path` is one of `protect`,
            `DM-OPB-012` when the disk refuses.
    """
    if format not in _WRITERS:
        raise DatamillError(
            "DM-OPB-010",
            f"there is no output format `{format}`",
            exit_code=ExitCode.INVALID,
            expected=", ".join(_WRITERS),
            nearest=nearest(format, _WRITERS),
        )
    target = path / f"{name}.{format}" if path.is_dir() else path
    _refuse_inputs(target, protect)
    try:
        with atomic_path(target, POINT) as temporary:
            with _opened(temporary, compress or _SUFFIXES.get(target.suffix)) as sink:
                rows = _WRITERS[format](sink, iter(tables))
            size, digest = temporary.stat().st_size, _sha256(temporary)
    except OSError as error:
        raise DatamillError("DM-OPB-012", f"cannot write: {error}", file=str(target)) from error
    return WrittenFile(target, rows, size, digest)


def json_record(names: Sequence[str], values: Sequence[Any]) -> bytes:
    """One JSON object on one line, UTF-8, keys in the order of the columns."""
    return orjson.dumps(dict(zip(names, values, strict=True)), default=_plain)


def _write_jsonl(sink: IO[bytes], tables: Iterator[pa.Table]) -> int:
    rows = 0
    for record in _records(tables):
        sink.write(record + b"\n")
        rows += 1
    return rows


def _write_json(sink: IO[bytes], tables: Iterator[pa.Table]) -> int:
    rows = 0
    for record in _records(tables):
        sink.write((b",\n" if rows else b"[\n") + record)
        rows += 1
    sink.write(b"\n]\n" if rows else b"[]\n")
    return rows


def _write_csv(sink: IO[bytes], tables: Iterator[pa.Table]) -> int:
    text = io.TextIOWrapper(sink, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    rows = 0
    for number, table in enumerate(tables):
        if number == 0:
            writer.writerow(table.column_names)
        columns = [table[name].to_pylist() for name in table.column_names]
        writer.writerows([_cell(value) for value in row] for row in zip(*columns, strict=True))
        rows += table.num_rows
    text.detach()
    return rows


def _write_parquet(sink: IO[bytes], tables: Iterator[pa.Table]) -> int:
    rows = 0
    first = next(tables, pa.table({}))
    schema = first.schema.remove_metadata()
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in _regrouped(first, tables):
            writer.write_table(group.cast(schema), row_group_size=ROW_GROUP)
            rows += group.num_rows
    return rows


_WRITERS: Final[dict[str, Callable[[IO[bytes], Iterator[pa.Table]], int]]] = {
    "jsonl": _write_jsonl,
    "json": _write_json,
    "parquet": _write_parquet,
    "csv": _write_csv,
}


def _regrouped(first: pa.Table, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The rows in groups of `ROW_GROUP`, the last one shorter."""
    waiting = first
    for table in tables:
        waiting = pa.concat_tables([waiting, table])
        while waiting.num_rows >= ROW_GROUP:
            yield waiting.slice(0, ROW_GROUP).combine_chunks()
            waiting = waiting.slice(ROW_GROUP)
    while waiting.num_rows:
        yield waiting.slice(0, ROW_GROUP).combine_chunks()
        waiting = waiting.slice(ROW_GROUP)


def _records(tables: Iterator[pa.Table]) -> Iterator[bytes]:
    for table in tables:
        columns = [_values(table, name) for name in table.column_names]
        for row in zip(*columns, strict=True):
            yield json_record(table.column_names, row)


def _values(table: pa.Table, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    if (table.schema.field(name).metadata or {}).get(DTYPE_KEY) != b"json":
        return values
    return [None if value is None else _fragment(value) for value in values]


def _fragment(text: str) -> orjson.Fragment:
    """JSON text as it stands, unless its line breaks would break the record."""
    one_line = text if "\n" not in text and "\r" not in text else json.dumps(json.loads(text), ensure_ascii=False)
    return orjson.Fragment(one_line)


def _cell(value: Any) -> Any:
    return orjson.dumps(value, default=_plain).decode() if isinstance(value, list | dict) else value


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


@contextmanager
def _opened(path: Path, compress: str | None) -> Iterator[IO[bytes]]:
    with path.open("wb") as raw:
        if compress == "gz":
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                yield packed  # type: ignore[misc]  # GzipFile is a binary stream in all that is used here
        elif compress == "zst":
            with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as stream:
                yield stream
        else:
            yield raw


def _refuse_inputs(target: Path, protect: Sequence[Path]) -> None:
    for source in protect:
        if target.resolve() == source.resolve() or (target.exists() and source.exists() and target.samefile(source)):
            raise DatamillError(
                "DM-OPB-011",
                "an output would replace an input",
                exit_code=ExitCode.INVALID,
                file=str(target),
                fix="choose another path for the output",
            )


def _sha256(path: Path) -> str:
    hasher = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            hasher.update(block)
    return hasher.hexdigest()
