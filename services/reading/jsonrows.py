"""Raw JSON records to columns of Python values, each value kept exactly.

Promises: an object becomes a row; anything else is refused with a reason. Integers beyond 64 bits stay exact, a lone
surrogate becomes U+FFFD and is noted, of duplicate keys the last one wins and is noted, NaN and Infinity are accepted
and noted. Costs: orjson for ordinary records, the standard library for the few that orjson refuses or would round.
Formats: RFC 8259; JSON Lines.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from datamill.services.reading.lines import HEAD_BYTES, Positions, RecordBlock
from datamill.services.reading.source import BadRecord

BOM: Final = b"\xef\xbb\xbf"
MAX_DIGITS: Final = 4000
"""Longest integer literal that is taken as a number (CPython refuses to print longer ones)."""

# orjson turns an integer beyond 64 bits into a float without a word, so records with 19 digits in a row that may be
# an integer literal are parsed by the standard library.
_DIGITS_TO_ZERO: Final = bytes(ord("0") if ord("1") <= code <= ord("9") else code for code in range(256))
_ZEROS: Final = b"0" * 19
_ZERO_RUN: Final = re.compile(b"0+")
_BEFORE_VALUE: Final = b":[, \t\r\n"
_LONE: Final = re.compile("[\ud800-\udfff]")
_BLANK: Final = re.compile(r"[ \t\n\r]*")


@dataclass(slots=True)
class Note:
    """A remark on a row that stays: index of the row in its block, reason slug, text."""

    index: int
    reason: str
    detail: str


@dataclass(slots=True)
class JsonRows:
    """Parsed objects of a block; `raws`, `offsets` and `lines` are aligned with `rows`."""

    rows: list[dict[str, Any]]
    raws: list[bytes]
    offsets: Positions
    lines: Positions
    bad: list[BadRecord]
    notes: list[Note] = field(default_factory=list)
    num_blank: int = 0
    originals: dict[int, bytes] = field(default_factory=dict)
    """Bytes, as they stand in the file, of rows whose `raws` were repaired."""


class RefusedRecordError(ValueError):
    """A record that cannot become a row; `reason` is the slug of its fate."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def parse_records(block: RecordBlock) -> JsonRows:
    """Parse every record of a block."""
    loads = orjson.loads
    rows: list[dict[str, Any]] = []
    kept: list[int] = []
    bad = list(block.bad)
    notes: list[Note] = []
    raws = block.raws
    repaired: dict[int, bytes] = {}
    exact = _long_integers(block)
    num_blank = 0
    for index, raw in enumerate(raws):
        try:
            row = loads(raw) if index not in exact else _tolerant(raw, len(rows), notes, repaired)
        except (orjson.JSONDecodeError, RefusedRecordError):
            if not raw or raw.isspace():
                num_blank += 1
                continue
            try:
                row = _tolerant(raw, len(rows), notes, repaired)
            except RefusedRecordError as error:
                bad.append(_refusal(block, index, error.reason, str(error)))
                continue
        if type(row) is not dict:
            bad.append(_refusal(block, index, "not_an_object", f"a record must be an object, this is {_kind(row)}"))
            continue
        rows.append(row)
        kept.append(index)
    if len(kept) == len(raws):
        parsed = JsonRows(rows, raws, block.offsets, block.lines, bad, notes, num_blank)
    else:
        parsed = JsonRows(rows, [raws[i] for i in kept], block.offsets[kept], block.lines[kept], bad, notes, num_blank)
    for index, raw in repaired.items():
        if parsed.raws is raws:
            parsed.raws = list(raws)
        parsed.originals[index] = parsed.raws[index]
        parsed.raws[index] = raw
    return parsed


def note_duplicate_keys(parsed: JsonRows, text: bytes) -> None:
    """Add a note to every row whose record repeats a key.

    A record holds at most as many keys as it holds colons after a quote or a blank. When a block has as many as its
    parsed rows have keys, or as the same rows written out again have, no key was lost; only blocks where the counts
    differ are looked at row by row.
    """
    bound = _key_bound(text)
    if bound == sum(map(len, parsed.rows)) or bound == _key_bound(_written(parsed.rows)):
        return
    for index, (row, raw) in enumerate(zip(parsed.rows, parsed.raws, strict=True)):
        written = parsed.originals.get(index, raw)
        bound = _key_bound(written)
        if bound > len(row) and bound != _key_bound(_written(row)):
            repeated = _repeated_keys(written)
            if repeated:
                detail = f"key {', '.join(repeated)} stands more than once; the last value is kept"
                parsed.notes.append(Note(index, "duplicate_key", detail))


def raw_members(raw: bytes) -> dict[str, str]:
    """The text of every top-level value of an object, exactly as written; of duplicate keys the last."""
    text = raw.decode("utf-8").removeprefix("\ufeff")
    members: dict[str, str] = {}
    at = _after_blank(text, _after_blank(text, 0) + 1)
    while text[at] == '"':
        key, at = _scan_string(text, at + 1)
        start = _after_blank(text, _after_blank(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        members[_LONE.sub("\ufffd", key)] = text[start:end]
        at = _after_blank(text, end)
        if text[at] != ",":
            break
        at = _after_blank(text, at + 1)
    return members


def _long_integers(block: RecordBlock) -> frozenset[int]:
    if not _has_long_integer(block.text):
        return frozenset()
    return frozenset(index for index, raw in enumerate(block.raws) if _has_long_integer(raw))


def _has_long_integer(text: bytes) -> bool:
    """Whether 19 digits in a row stand where an integer literal may; decimals and most strings do not count."""
    zeros = text.translate(_DIGITS_TO_ZERO)
    at = zeros.find(_ZEROS)
    while at >= 0:
        before = at - 2 if zeros[at - 1 : at] == b"-" else at - 1
        if before < 0 or zeros[before] in _BEFORE_VALUE:
            return True
        run = _ZERO_RUN.match(zeros, at)
        assert run is not None
        at = zeros.find(_ZEROS, run.end())
    return False


def _refusal(block: RecordBlock, index: int, reason: str, error: str) -> BadRecord:
    raw = block.raws[index][:HEAD_BYTES]
    return BadRecord(int(block.offsets[index]), int(block.lines[index]), reason, error, raw)


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise RefusedRecordError("invalid_json", f"an integer of {len(digits)} digits")
    return int(digits)


_DECODER: Final = json.JSONDecoder(parse_int=_integer)


def _scan_string(text: str, at: int) -> tuple[str, int]:
    """The string whose first character is at `at`, and the position after its closing quote."""
    value, end = _DECODER.raw_decode(text, at - 1)
    return str(value), end


def _tolerant(raw: bytes, index: int, notes: list[Note], repaired: dict[int, bytes]) -> Any:
    """Parse what orjson refuses; adds notes and the repaired bytes of the row that will get `index`."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedRecordError("invalid_encoding", f"byte {error.start} of the record: {error.reason}") from error
    found: list[Note] = []
    if text.startswith("\ufeff"):
        text = text[1:]
        found.append(Note(index, "stray_bom", "a byte order mark inside the file was removed"))
    value = _decode(text, index, found)
    if type(value) is not dict:
        return value
    if "\\u" in text and _LONE.search(json.dumps(value, ensure_ascii=False)):
        value = _repair(value)
        repaired[index] = json.dumps(value, ensure_ascii=False).encode()
        found.append(Note(index, "repaired_surrogate", "a lone surrogate became U+FFFD"))
    notes.extend(found)
    return value


def _decode(text: str, index: int, found: list[Note]) -> Any:
    constants: list[str] = []

    def constant(token: str) -> float:
        constants.append(token)
        return float(token)

    try:
        value = json.loads(text, parse_constant=constant, parse_int=_integer)
    except RefusedRecordError:
        raise
    except RecursionError as error:
        raise RefusedRecordError("too_deep", "nested too deeply") from error
    except ValueError as error:
        raise RefusedRecordError("invalid_json", str(error)) from error
    if constants:
        found.append(Note(index, "nonstandard_number", f"{', '.join(sorted(set(constants)))} is not standard JSON"))
    return value


def _repair(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_repair(item) for item in value]
    if isinstance(value, dict):
        return {_repair(key): _repair(item) for key, item in value.items()}
    return value


def _written(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _key_bound(text: bytes) -> int:
    return sum(text.count(end) for end in (b'":', b" :", b"\t:", b"\r:", b"\n:") if end[:1] in text)


def _repeated_keys(raw: bytes) -> list[str]:
    repeated: set[str] = set()

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            seen: set[str] = set()
            repeated.update(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return members

    json.loads(raw.decode("utf-8").removeprefix("\ufeff"), object_pairs_hook=collect, parse_int=len)
    return sorted(repeated)


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()
