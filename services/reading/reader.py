"""Reading a source: plan chunks, profile them, fix the schema, read batches.

The four calls of a runner::

    files = resolve_files(spec)                       # names, formats, findings
    chunks = plan_chunks(spec, files.files)           # deterministic byte ranges with digests
    profile = merge_profiles(profile_chunk(spec, c) for c in chunks)     # may run anywhere, merged in chunk order
    schema, findings = make_schema(spec, profile)     # a function of the data alone
    for chunk in chunks: read_chunk(spec, chunk, schema)                 # may run anywhere

Promises: rows, ids and types do not depend on how files were cut or who read them. A record is a row, or it is among
the fates with file, line, offset, reason and the head of its bytes. Costs: two passes over the data (types, then
rows); memory of a few blocks.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import xxhash

from datamill.errors import DatamillError, Issue
from datamill.services.reading.blocks import Block, json_block
from datamill.services.reading.build import build_table, row_ids, source_key
from datamill.services.reading.bytestream import BLOCK_BYTES, ByteStream, is_utf8, raw_blocks, unreadable
from datamill.services.reading.csvrows import read_csv
from datamill.services.reading.documents import read_document
from datamill.services.reading.files import resolve_files
from datamill.services.reading.jsonrows import note_duplicate_keys, parse_records
from datamill.services.reading.lines import RecordBlock, split_lines
from datamill.services.reading.parquetrows import open_parquet, read_parquet
from datamill.services.reading.profile import Profile
from datamill.services.reading.schema import empty_files, make_schema
from datamill.services.reading.source import BATCH_BYTES, BadRecord, Batch, Chunk, FileEntry, SourceSpec
from datamill.services.reading.textrows import read_text
from datamill.services.records import Fate, fates

RAW_SHOWN: Final = 200


def plan_chunks(spec: SourceSpec, files: Sequence[FileEntry] | None = None) -> list[Chunk]:
    """Cut the files of a source into chunks that can be read alone.

    Plain UTF-8 JSON Lines and text lines are cut after the first newline at or behind every `chunk_bytes`; Parquet by
    row group; everything else is one chunk a file.

    Args:
        spec: the source.
        files: its files when they are known already.

    Returns:
        Chunks in file and position order; empty files give none.
    """
    chunks: list[Chunk] = []
    for file in resolve_files(spec).files if files is None else files:
        chunks += _parquet_chunks(file) if file.format == "parquet" else _byte_chunks(spec, file)
    return chunks


def profile_chunk(spec: SourceSpec, chunk: Chunk, num_rows: int | None = None) -> Profile:
    """What the rows of a chunk hold; the first `num_rows` or all of them."""
    profile = Profile()
    for block in _blocks(spec, chunk, for_profile=True):
        profile.observe(block, chunk.file)
        if num_rows is not None and profile.num_rows >= num_rows:
            break
    return profile


def merge_profiles(profiles: Iterable[Profile]) -> Profile:
    """One profile of all chunks; they must come in chunk order."""
    total = Profile()
    for profile in profiles:
        total.merge(profile)
    return total


def infer_schema(spec: SourceSpec, sample_rows: int | None = None) -> tuple[pa.Schema, list[Issue]]:
    """Schema of a source and findings about its files and columns.

    Args:
        spec: the source.
        sample_rows: look at about so many rows from the start of every file only. That is a preview: later rows may
            bring other types. None reads everything and gives the schema that `read_chunk` never breaks.
    """
    found = resolve_files(spec)
    chunks = plan_chunks(spec, found.files)
    if sample_rows is not None:
        chunks = [chunk for chunk in chunks if chunk.start == 0]
    profile = merge_profiles(profile_chunk(spec, chunk, sample_rows) for chunk in chunks)
    schema, findings = make_schema(spec, profile)
    shapes = shape_findings(spec, chunks)
    return schema, [*found.findings, *shapes, *empty_files(found.files, profile), *findings]


def shape_findings(spec: SourceSpec, chunks: Sequence[Chunk]) -> list[Issue]:
    """How JSON documents that are objects were understood."""
    shapes: list[Issue] = []
    for chunk in chunks:
        if chunk.file.format == "json":
            next(read_document(spec, chunk, shapes), None)
    return shapes


def read_chunk(spec: SourceSpec, chunk: Chunk, schema: pa.Schema) -> Iterator[Batch]:
    """Rows and fates of a chunk, in batches of at most `shard_rows` rows and about 32 MB.

    Args:
        spec: the source.
        chunk: the chunk.
        schema: data columns, from `infer_schema` or `make_schema`.

    Raises:
        DatamillError: `DM-READ-005` at the first broken record when `on_bad_row` is `fail`, `DM-READ-010` when the
            file is no longer the one that was planned.
    """
    _check_unchanged(chunk)
    source = source_key(spec.name, chunk.file)
    for block in _blocks(spec, chunk):
        table, mismatched = build_table(block, schema, source, chunk.file)
        bad = [*block.bad, *mismatched]
        if bad and spec.on_bad_row == "fail":
            raise _bad_row_error(chunk.file, min(bad, key=lambda record: record.offset))
        yield from _batches(spec, chunk.file, source, block, table, bad)


def check_bad(spec: SourceSpec, num_rows: int, num_bad: int, quarantined: pa.Table) -> None:
    """Refuse a source with too many broken records.

    Args:
        spec: the source with its `max_bad`.
        num_rows: rows read.
        num_bad: records refused.
        quarantined: fates that hold (at least the first three) refused records.

    Raises:
        DatamillError: `DM-READ-004` when `num_bad / (num_rows + num_bad)` exceeds `max_bad`.
    """
    total = num_rows + num_bad
    if not num_bad or num_bad <= spec.max_bad * total:
        return
    refused = [f for f in quarantined.slice(0, 10_000).to_pylist() if f["fate"] == Fate.QUARANTINED][:3]
    places = "; ".join(f"{f['src']} (byte {f['offset']}) {f['reason']}: {f['detail']}" for f in refused)
    share = num_bad / total
    raise DatamillError(
        "DM-READ-004",
        f"{num_bad} of {total} records of input `{spec.name}` are broken "
        f"({share:.2%}, allowed {spec.max_bad:.2%}). {places}",
        file=spec.path,
        field="params.max_bad",
        fix=f"repair the file, or accept them with params.max_bad: {_round_up(share):g}",
        context={"bad": num_bad, "records": total},
    )


def _round_up(share: float) -> float:
    return min(1.0, int(share * 100 + 1) / 100)


def _blocks(spec: SourceSpec, chunk: Chunk, *, for_profile: bool = False) -> Iterator[Block]:
    match chunk.file.format:
        case "jsonl":
            records = split_lines(ByteStream(chunk), chunk.first_line, spec.max_line_bytes)
            return _json_blocks(spec, records, for_profile=for_profile)
        case "json":
            return _json_blocks(spec, read_document(spec, chunk), for_profile=for_profile)
        case "csv" | "tsv":
            return read_csv(spec, chunk)
        case "txt":
            return read_text(spec, chunk)
        case "parquet":
            return read_parquet(spec, chunk)


def _json_blocks(spec: SourceSpec, records: Iterable[RecordBlock], *, for_profile: bool) -> Iterator[Block]:
    wanted = None if spec.columns is None or for_profile else frozenset(spec.columns)
    for block in records:
        parsed = parse_records(block)
        if not for_profile:
            note_duplicate_keys(parsed, block.text)
        yield json_block(parsed, wanted)


def _batches(
    spec: SourceSpec, file: FileEntry, source: str, block: Block, table: pa.Table, bad: list[BadRecord]
) -> Iterator[Batch]:
    step = spec.shard_rows
    if table.num_rows and table.nbytes > BATCH_BYTES:
        step = max(1, min(step, table.num_rows * BATCH_BYTES // table.nbytes))
    records = [_quarantine(record, source, file) for record in bad] + _notes(block, source, file)
    first = True
    for start in range(0, max(table.num_rows, 1), step):
        part = table.slice(start, step)
        if not first and part.num_rows == 0:
            return
        if first and not part.num_rows and not records and not block.num_blank:
            return
        yield Batch(part, fates(records if first else ()), block.num_blank if first else 0, len(bad) if first else 0)
        first = False


def _quarantine(record: BadRecord, source: str, file: FileEntry) -> dict[str, object]:
    raw = record.raw[:RAW_SHOWN].decode("utf-8", "backslashreplace")
    return {
        "id": record.record or row_ids(source, [record.offset])[0],
        "fate": str(Fate.QUARANTINED),
        "reason": record.reason,
        "detail": f"{record.error}; raw: {raw}",
        "src": f"{file.display}:{record.line}",
        "offset": record.offset,
    }


def _notes(block: Block, source: str, file: FileEntry) -> list[dict[str, object]]:
    return [
        {
            "id": row_ids(source, [int(block.offsets[note.index])])[0],
            "fate": str(Fate.NOTED),
            "reason": note.reason,
            "detail": note.detail,
            "src": f"{file.display}:{int(block.lines[note.index])}",
            "offset": int(block.offsets[note.index]),
        }
        for note in block.notes
    ]


def _bad_row_error(file: FileEntry, record: BadRecord) -> DatamillError:
    raw = record.raw[:RAW_SHOWN].decode("utf-8", "backslashreplace")
    return DatamillError(
        "DM-READ-005",
        f"byte {record.offset}: {record.reason}: {record.error}; raw: {raw}",
        file=file.display,
        line=record.line,
        fix="repair the record, or set params.on_bad_row: quarantine",
    )


def _check_unchanged(chunk: Chunk) -> None:
    try:
        size = chunk.file.path.stat().st_size
    except OSError as error:
        raise unreadable(chunk.file.path, error) from error
    if size != chunk.file.num_bytes:
        message = f"the file has {size} bytes, {chunk.file.num_bytes} when the run was planned"
        raise DatamillError("DM-READ-010", message, file=chunk.file.display, fix="plan and approve again")


def _byte_chunks(spec: SourceSpec, file: FileEntry) -> list[Chunk]:
    lines = file.format == "jsonl" or (file.format == "txt" and spec.unit == "line")
    cuttable = lines and file.compression == "none" and is_utf8(file.encoding)
    limit = spec.chunk_bytes if cuttable else file.num_bytes
    chunks: list[Chunk] = []
    start, line, newlines, length = 0, 1, 0, 0
    digest = xxhash.xxh3_128()
    for block in raw_blocks(file.path, 0, file.num_bytes, BLOCK_BYTES):
        at = 0
        while at < len(block):
            # The cut is the first newline whose end reaches the limit, wherever blocks happen to end.
            cut = block.find(b"\n", max(at, at + limit - length - 1)) if cuttable else -1
            stop = len(block) if cut < 0 else cut + 1
            part = block[at:stop]
            digest.update(part)
            newlines += part.count(b"\n")
            length += len(part)
            at = stop
            if cut >= 0:
                chunks.append(Chunk(file, start, start + length, line, newlines, digest.hexdigest()))
                start, line, newlines, length = start + length, line + newlines, 0, 0
                digest = xxhash.xxh3_128()
    if length:
        chunks.append(Chunk(file, start, start + length, line, newlines, digest.hexdigest()))
    return chunks


def _parquet_chunks(file: FileEntry) -> list[Chunk]:
    digest = xxhash.xxh3_128()
    for block in raw_blocks(file.path, 0, file.num_bytes):
        digest.update(block)
    whole = digest.hexdigest()
    chunks: list[Chunk] = []
    row = 1
    with open_parquet(file) as handle:
        for group in range(handle.metadata.num_row_groups):
            rows = handle.metadata.row_group(group).num_rows
            key = xxhash.xxh3_128_hexdigest(f"{whole}\0{group}".encode())
            chunks.append(Chunk(file, group, group + 1, row, rows, key))
            row += rows
    return chunks
