"""Columns of a block to an Arrow table of the agreed schema, with system columns; what does not fit is refused.

Promises: a value is never changed silently: `string` columns hold every value as written, `json` columns its JSON
text, and a value that a declared type cannot hold exactly puts its row aside with reason `type_mismatch`.
Costs: one Arrow conversion per column; the row id is one xxh3-128 per row (0.25 us).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from datamill.services.reading.blocks import Block, as_orders
from datamill.services.reading.columns import (
    DTYPE_KEY,
    SLICE_ROWS,
    SOURCE_KEY,
    Column,
    merge_types,
    nested_array,
)
from datamill.services.reading.jsonrows import raw_members
from datamill.services.reading.source import BadRecord, FileEntry
from datamill.services.records import SYSTEM_FIELDS

Failures = dict[int, str]
_TRUE: Final = frozenset({"true", "True", "TRUE", "1"})
_FALSE: Final = frozenset({"false", "False", "FALSE", "0"})


def source_key(source_name: str, file: FileEntry) -> str:
    """What identifies a file in row ids."""
    return f"{source_name}:{file.relative}"


def row_ids(source: str, offsets: Sequence[int]) -> list[str]:
    """`records.row_id(source, offset)` of every offset."""
    head, digest = f"{source}\0".encode(), xxhash.xxh3_128_hexdigest
    return [digest(head + b"%d\x000" % offset) for offset in offsets]


def build_table(block: Block, schema: pa.Schema, source: str, file: FileEntry) -> tuple[pa.Table, list[BadRecord]]:
    """Rows of a block.

    Args:
        block: the columns.
        schema: data columns to make; keys of the block that it does not name are left out.
        source: identity of the file in ids, see `source_key`.
        file: the file.

    Returns:
        Table of system and data columns, and the rows whose values the schema cannot hold.
    """
    members = _Members(block.raws)
    failures: dict[int, tuple[str, str]] = {}
    arrays = []
    for field in schema:
        key = (field.metadata or {}).get(SOURCE_KEY, field.name.encode()).decode()
        failed: Failures = {}
        array = _build_column(block.columns.get(key), field, key, members, block.num_rows, failed)
        failures.update({i: (field.name, text) for i, text in failed.items() if i not in failures})
        arrays.append(array)
    table = pa.Table.from_arrays(
        [*_system_arrays(block, source, file), *arrays], schema=pa.schema([*SYSTEM_FIELDS, *schema])
    )
    if not failures:
        return table, []
    keep = np.ones(block.num_rows, dtype=bool)
    keep[list(failures)] = False
    bad = [_mismatch(block, index, *failures[index], table) for index in sorted(failures)]
    return table.filter(pa.array(keep)), bad


def _mismatch(block: Block, index: int, column: str, text: str, table: pa.Table) -> BadRecord:
    raw = block.raws[index][:200] if block.raws is not None else b""
    offset, line = int(block.offsets[index]), int(block.lines[index])
    return BadRecord(offset, line, "type_mismatch", f"column `{column}`: {text}", raw, table["_id"][index].as_py())


def _system_arrays(block: Block, source: str, file: FileEntry) -> list[pa.Array]:
    ids = pa.array(row_ids(source, block.offsets.tolist()), pa.string())
    orders = pa.array(as_orders(file.index, block.offsets), pa.int64())
    lines = pa.array(block.lines, pa.int64()).cast(pa.string())
    return [ids, orders, pc.binary_join_element_wise(f"{file.display}:", lines, "")]


class _Members:
    """Raw texts of the members of each object, parsed for rows that need them only."""

    def __init__(self, raws: list[bytes] | None) -> None:
        self._raws = raws
        self._parsed: dict[int, Mapping[str, str]] = {}

    @property
    def known(self) -> bool:
        """Whether the block has raw objects."""
        return self._raws is not None

    def text(self, index: int, key: str) -> str:
        """The value of `key` in row `index` exactly as written."""
        assert self._raws is not None
        if index not in self._parsed:
            self._parsed[index] = raw_members(self._raws[index])
        return self._parsed[index][key]


def _build_column(
    values: Column | None, field: pa.Field, key: str, members: _Members, num_rows: int, failed: Failures
) -> pa.Array:
    if values is None:
        array = pa.nulls(num_rows, field.type)
    elif isinstance(values, pa.Array | pa.ChunkedArray):
        array = _from_arrow(values, field, failed)
    elif (field.metadata or {}).get(DTYPE_KEY) == b"json":
        texts = [None if v is None else members.text(i, key) for i, v in enumerate(values)]
        array = pa.array(texts, pa.string())
    elif pa.types.is_string(field.type):
        array = _strings(values, key, members)
    elif pa.types.is_nested(field.type):
        array = _nested(values, field.type, failed)
    else:
        array = _scalars(values, field.type, failed)
    if not field.nullable and array.null_count > len(failed):
        for index in np.flatnonzero(np.asarray(array.is_null())):
            failed.setdefault(int(index), "has no value, but the planned schema has one in every row")
    return _without_nulls(array, field) if failed and not field.nullable else array


def _without_nulls(array: pa.Array, field: pa.Field) -> pa.Array:
    """Fill rows that are about to leave, so that a column without nulls stays one."""
    if pa.types.is_nested(field.type):
        return array
    zero: Any = "" if pa.types.is_string(field.type) else False if pa.types.is_boolean(field.type) else 0
    return array.fill_null(pa.scalar(zero, field.type))


def _strings(values: Sequence[Any], key: str, members: _Members) -> pa.Array:
    if set(map(type, values)) <= {str, type(None)}:
        return pa.array(values, pa.string())
    texts: list[str | None] = []
    for index, value in enumerate(values):
        if value is None or type(value) is str:
            texts.append(value)
        else:  # `-0`, `1.50` and `1e3` are only known from the raw text
            plain = type(value) is int and value != 0
            texts.append(str(value) if plain else members.text(index, key))
    return pa.array(texts, pa.string())


def _nested(values: Sequence[Any], kind: pa.DataType, failed: Failures) -> pa.Array:
    array = _nested_or_none(values, kind)
    if array is not None:
        return array
    kept: list[Any] = []
    for index, value in enumerate(values):
        fits = value is None or (isinstance(value, list | dict) and _nested_or_none([value], kind) is not None)
        kept.append(value if fits else None)
        if not fits:
            failed[index] = f"a value of another shape than {kind}"
    return pa.array(kept, kind)


def _nested_or_none(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    parts = []
    # In slices, because the type of objects with ever new keys is found before they are refused.
    for start in range(0, max(len(values), 1), SLICE_ROWS):
        part = values[start : start + SLICE_ROWS]
        found = nested_array(part)
        if found is None or not _fits(found.type, kind):
            return None
        try:
            parts.append(found if found.type == kind else pa.array(part, kind))
        except pa.ArrowInvalid:  # an integer that the doubles of `kind` cannot hold
            return None
    return pa.concat_arrays(parts)


def _fits(found: pa.DataType, kind: pa.DataType) -> bool:
    """Whether `kind` holds values of type `found`; a key that `kind` does not know would be lost."""
    if pa.types.is_null(found) or found == kind:
        return True
    if pa.types.is_list(found) and pa.types.is_list(kind):
        return _fits(found.value_type, kind.value_type)
    if pa.types.is_struct(found) and pa.types.is_struct(kind):
        places = [(part, kind.get_field_index(part.name)) for part in found]
        return all(at >= 0 and _fits(part.type, kind.field(at).type) for part, at in places)
    return bool(merge_types(found, kind) == kind)


def _scalars(values: Sequence[Any], kind: pa.DataType, failed: Failures) -> pa.Array:
    allowed = _ALLOWED[kind]
    if set(map(type, values)) <= allowed:
        try:
            return pa.array(values, kind)
        except (pa.ArrowInvalid, OverflowError):  # an integer out of range: found value by value below
            pass
    return _converted(values, kind, failed)


def _converted(values: Sequence[Any], kind: pa.DataType, failed: Failures) -> pa.Array:
    convert = _CONVERT[kind]
    kept: list[Any] = []
    for index, value in enumerate(values):
        result = None
        if value is not None:
            try:
                result = convert(value)
            except (ValueError, OverflowError):
                failed[index] = f"{_short(value)} is not {_ARTICLE[kind]}"
        kept.append(result)
    return pa.array(kept, kind)


def _to_int(value: Any) -> int:
    if type(value) is float and not value.is_integer():
        raise ValueError(value)
    if type(value) is bool or (isinstance(value, str) and "_" in value):  # Python reads 1_000, data means text
        raise ValueError(value)
    whole = int(value) if isinstance(value, int | float | str) else _refuse(value)
    return whole if -(1 << 63) <= whole < 1 << 63 else _refuse(value)


def _to_float(value: Any) -> float:
    if type(value) is bool or (isinstance(value, str) and "_" in value):
        raise ValueError(value)
    number = float(value) if isinstance(value, int | float | str) else _refuse(value)
    if type(value) is int and int(number) != value:
        raise ValueError(value)
    return number


def _to_bool(value: Any) -> bool:
    if type(value) is bool:
        return value
    if type(value) is int and value in {0, 1}:
        return bool(value)
    if isinstance(value, str) and value.strip() in _TRUE | _FALSE:
        return value.strip() in _TRUE
    return bool(_refuse(value))


def _refuse(value: Any) -> int:
    raise ValueError(value)


_CONVERT: Final[dict[pa.DataType, Callable[[Any], Any]]] = {
    pa.int64(): _to_int,
    pa.float64(): _to_float,
    pa.bool_(): _to_bool,
}
_ALLOWED: Final[dict[pa.DataType, set[type]]] = {
    pa.int64(): {int, type(None)},
    pa.float64(): {int, float, type(None)},
    pa.bool_(): {bool, type(None)},
}
_ARTICLE: Final = {
    pa.int64(): "an integer of 64 bits",
    pa.float64(): "an exact decimal number",
    pa.bool_(): "a boolean",
}


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return repr(text[:60])


def _from_arrow(values: Any, field: pa.Field, failed: Failures) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    json_text = (field.metadata or {}).get(DTYPE_KEY) == b"json"
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), field.type)
    if json_text or (pa.types.is_string(field.type) and pa.types.is_nested(array.type)):
        return _json_texts(array, failed)
    if array.type == field.type:
        return array
    if pa.types.is_nested(field.type):
        return _nested(array.to_pylist(), field.type, failed)
    return _cast(array, field.type, failed)


def _cast(array: pa.Array, kind: pa.DataType, failed: Failures) -> pa.Array:
    if kind in _CONVERT:
        return _scalars(array.to_pylist(), kind, failed)
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        failed.update(dict.fromkeys(range(len(array)), f"{array.type} cannot become {kind}: {error}"))
        return pa.nulls(len(array), kind)


def _json_texts(array: pa.Array, failed: Failures) -> pa.Array:
    """JSON text of each value; text of a file without types must be JSON already."""
    values = array.to_pylist()
    if not pa.types.is_string(array.type):
        return pa.array([None if v is None else orjson.dumps(v, default=str).decode() for v in values], pa.string())
    for index, value in enumerate(values):
        try:
            orjson.loads(value or "null")
        except orjson.JSONDecodeError as error:
            failed[index] = f"{_short(value)} is not JSON: {error}"
    return array
