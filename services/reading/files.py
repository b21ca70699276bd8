"""Which files a source has and what they are, by a look at their first bytes.

Promises: files come in name order with consecutive numbers; compression and byte order marks are found by content; a
disagreement between name and content, a file that is passed over and a text file that looks like JSON are findings,
never silence. Costs: one small read per file.
"""

import glob
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

import orjson

from datamill.errors import DatamillError, Issue, nearest
from datamill.services.reading.bytestream import (
    ByteStream,
    first_unpacked,
    is_utf8,
    raw_blocks,
    sniff_compression,
    sniff_encoding,
    unreadable,
)
from datamill.services.reading.source import FORMATS, Chunk, FileEntry, Format, SourceSpec
from datamill.services.records import MAX_FILES

HEAD_BYTES: Final = 1 << 20
SUFFIXES: Final[dict[str, Format]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "txt",
    ".text": "txt",
}
PACKED_SUFFIXES: Final = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_FAMILY: Final[dict[Format, str]] = {"jsonl": "json", "json": "json", "csv": "csv", "tsv": "csv"}


@dataclass(slots=True)
class FileList:
    """Files of a source in name order, and what was noticed on the way."""

    files: list[FileEntry] = field(default_factory=list)
    findings: list[Issue] = field(default_factory=list)


def resolve_files(spec: SourceSpec) -> FileList:
    """Find the files of a source and look at each.

    Raises:
        DatamillError: `DM-READ-001` nothing at the path, `DM-READ-002` no data file there, `DM-READ-003` a file cannot
            be read, `DM-READ-007` a format cannot be told, `DM-READ-011` too many files.
    """
    result = FileList()
    paths, base, picked = _candidates(spec)
    skipped = []
    for path in paths:
        if not picked and not _wanted(path, spec.format):
            skipped.append(path.name)
            continue
        relative = path.relative_to(base).as_posix()
        display = _display(spec, path)
        result.files.append(_look(spec, path, relative, display, len(result.files), result.findings))
    if skipped:
        names = ", ".join(skipped[:5]) + (", ..." if len(skipped) > 5 else "")
        message = f"{len(skipped)} files of other kinds are not read: {names}"
        result.findings.append(Issue("DM-READ-109", message, severity="note", file=spec.path))
    if not result.files:
        message = "there is no data file here"
        expected = f"files ending in {', '.join(SUFFIXES)}, also with .gz or .zst"
        raise DatamillError("DM-READ-002", message, file=spec.path, expected=expected)
    if len(result.files) >= MAX_FILES:
        raise DatamillError("DM-READ-011", f"{len(result.files)} files; at most {MAX_FILES - 1} fit", file=spec.path)
    return result


def detect_format(path: Path, encoding: str = "utf-8") -> Format:
    """Format of a file by content and name, for inputs that do not say.

    Raises:
        DatamillError: `DM-READ-007` when neither tells.
    """
    head = _plain_head(path, encoding)
    named = suffix_format(path)
    if head.startswith(b"PAR1"):
        return "parquet"
    if _is_binary(head[:4096], named):
        raise DatamillError(
            "DM-READ-007",
            "the file is binary and of no known format",
            file=str(path),
            expected=", ".join(FORMATS),
            fix="if it is UTF-16 text without a byte order mark, set params.encoding: utf-16-le",
        )
    if named in {"csv", "tsv", "txt"}:
        return named
    shape = json_shape(head, named or "jsonl")
    if shape is not None:
        return shape
    if named is not None and named != "parquet":
        return named
    if named == "parquet":
        raise DatamillError("DM-READ-012", "this is not a Parquet file, whatever its name says", file=str(path))
    return "txt"


def json_shape(head: bytes, named: Format) -> Format | None:
    """`jsonl` or `json` by the first bytes of decompressed text, None when it does not look like JSON.

    An object that is complete on the first line and followed by more lines is JSON Lines, one that is not complete
    there is a document, a single line is what the name says. An array is a document unless it is complete on the
    first line, lines follow and the name says JSON Lines.
    """
    text = head.lstrip()
    if text[:1] not in {b"[", b"{"}:
        return None
    line, _, rest = text.partition(b"\n")
    try:
        first = orjson.loads(line)
    except orjson.JSONDecodeError:
        # Broken, cut off, or a document over several lines: an array that opens alone is a document.
        if text[:1] == b"[" or _is_document(text):
            return "json"
        return "json" if named == "json" and not _looks_like_lines(text) else "jsonl"
    if isinstance(first, list) and (named == "json" or not rest.strip()):
        return "json"
    return "json" if named == "json" and not rest.strip() else "jsonl"


def suffix_format(path: Path) -> Format | None:
    """Format that the name claims, below a compression suffix."""
    names = PurePosixPath(path.name.lower())
    if names.suffix in PACKED_SUFFIXES:
        names = names.with_suffix("")
    return SUFFIXES.get(names.suffix)


def _is_binary(head: bytes, named: Format | None) -> bool:
    """A stray NUL happens in real text; many of them, or one in a file of unknown kind, mean something else."""
    num_nul = head.count(b"\0")
    return num_nul > 0 and (named is None or num_nul > 0.05 * len(head))


def _is_document(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _looks_like_lines(text: bytes) -> bool:
    """Whether most of the next lines are objects of their own although the first one is broken."""
    lines = [line for line in text.split(b"\n")[1:20] if line.strip()]
    return 2 * sum(line.lstrip()[:1] == b"{" and _is_document(line) for line in lines) > len(lines)


def _candidates(spec: SourceSpec) -> tuple[list[Path], Path, bool]:
    """Paths in name order, the folder that names are relative to, and whether they were named one by one."""
    path = spec.root / spec.path
    try:
        if path.is_dir():
            return list(_walk(path)), path, False
        if path.exists():
            return [path], path.parent, True
    except OSError as error:
        raise unreadable(path, error) from error
    if glob.has_magic(spec.path):
        found = sorted(
            {
                Path(name)
                for name in glob.glob(str(path), recursive=True)  # noqa: PTH207  patterns may be absolute
                if Path(name).is_file()
            }
        )
        if found:
            return found, Path(*_fixed_parts(path)), True
    siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    raise DatamillError(
        "DM-READ-001",
        f"there is no file, folder or match at `{spec.path}`",
        file=str(path),
        nearest=nearest(path.name, siblings),
        field="path",
    )


def _fixed_parts(path: Path) -> Iterator[str]:
    for part in path.parts[:-1]:
        if glob.has_magic(part):
            return
        yield part


def _walk(folder: Path) -> Iterator[Path]:
    hidden = (".", "_")
    paths = [p for p in folder.rglob("*") if p.is_file()]
    shown = [p for p in paths if not any(part.startswith(hidden) for part in p.relative_to(folder).parts)]
    yield from sorted(shown, key=lambda p: p.relative_to(folder).as_posix())


def _wanted(path: Path, declared: Format | None) -> bool:
    named = suffix_format(path)
    if named is None:
        return False
    return declared is None or _FAMILY.get(declared, declared) == _FAMILY.get(named, named)


def _display(spec: SourceSpec, path: Path) -> str:
    try:
        return path.resolve().relative_to(spec.root.resolve()).as_posix()
    except ValueError:
        return path.as_posix()


def _look(spec: SourceSpec, path: Path, relative: str, display: str, index: int, findings: list[Issue]) -> FileEntry:
    packed = next(raw_blocks(path, 0, HEAD_BYTES, HEAD_BYTES), b"")
    compression = sniff_compression(packed)
    claimed = PACKED_SUFFIXES.get(path.suffix.lower(), "none")
    if packed and compression != claimed:
        message = f"the name says {_spoken(claimed)}, the content is {_spoken(compression)}; the content is followed"
        findings.append(Issue("DM-READ-101", message, severity="warning", file=display))
    size = path.stat().st_size
    probe = FileEntry(path, relative, display, index, "txt", compression, spec.encoding, size)
    encoding = sniff_encoding(_unpacked_head(probe, packed), spec.encoding)
    if not is_utf8(encoding) and is_utf8(spec.encoding):
        message = f"a byte order mark says {encoding}; it is read as that"
        findings.append(Issue("DM-READ-108", message, severity="note", file=display))
    probe = FileEntry(path, relative, display, index, "txt", compression, encoding, size)
    kind = _format(spec, probe, findings)
    return FileEntry(path, relative, display, index, kind, compression, encoding, size)


def _format(spec: SourceSpec, file: FileEntry, findings: list[Issue]) -> Format:
    declared = spec.format or detect_format(file.path, file.encoding)
    if declared not in {"json", "jsonl", "txt"}:
        return declared
    head = _head(file)
    named = suffix_format(file.path) or declared
    shape = json_shape(head, named if named in {"json", "jsonl"} else declared)
    if declared == "txt":
        if shape is not None:
            message = f"the text looks like JSON ({shape}), but is read as plain text"
            fix = f"set format: {shape}"
            findings.append(Issue("DM-READ-105", message, severity="warning", file=file.display, fix=fix))
        return "txt"
    if shape is not None and shape != declared:
        what = {"json": "a JSON document", "jsonl": "JSON Lines"}
        message = f"the content is {what[shape]}, not {what[declared]}; it is read as that"
        findings.append(Issue("DM-READ-112", message, severity="note", file=file.display))
    return shape or declared


def _spoken(compression: str) -> str:
    return "not compressed" if compression == "none" else compression


def _head(file: FileEntry) -> bytes:
    """First decompressed UTF-8 bytes without a byte order mark."""
    chunk = Chunk(file, 0, file.num_bytes, 1, 0, "")
    parts, size = [], 0
    for block in ByteStream(chunk):
        parts.append(block)
        size += len(block)
        if size >= HEAD_BYTES:
            break
    return b"".join(parts)[:HEAD_BYTES]


def _plain_head(path: Path, encoding: str) -> bytes:
    packed = next(raw_blocks(path, 0, 4096), b"")
    entry = FileEntry(path, path.name, path.name, 0, "txt", sniff_compression(packed), encoding, path.stat().st_size)
    raw = _unpacked_head(entry, packed)
    if raw.startswith(b"PAR1"):
        return raw
    found = sniff_encoding(raw, encoding)
    return _head(FileEntry(path, path.name, path.name, 0, "txt", entry.compression, found, entry.num_bytes))


def _unpacked_head(file: FileEntry, packed: bytes) -> bytes:
    """First decompressed bytes before any decoding."""
    if file.compression == "none":
        return packed[:4096]
    return first_unpacked(packed, file.compression)[:4096]
