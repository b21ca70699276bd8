"""Types of columns, found from all of the data and from nothing else.

A `ColumnProfile` counts what kinds of values a column holds; profiles of chunks, merged in input order, give what one
pass over everything gives, so a column's type never depends on how the data was cut. The rules:

* one kind: that type; integers and decimals together: `double` while every integer is exact in it (|n| <= 2**53);
* several scalar kinds, or integers beyond 64 bits: `string`, every value as written;
* an array or object together with another kind, or irregular inside: `json`, the JSON text of every value;
* objects get the union of their fields while fields are mostly present (see `MIN_FILL`), else `json`.

Costs: one `set(map(type, ...))` per column and block; nested values are typed by Arrow's own C++ inference.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from datamill.services.reading.lines import Positions

EXACT: Final = 1 << 53
"""Largest integer below which every integer is a double."""
MAX_FIELDS: Final = 64
MIN_FILL: Final = 0.5
"""Objects whose union of fields is emptier than this on average are free-form and stay JSON text."""

SLICE_ROWS: Final = 1024

DTYPE_KEY: Final = b"datamill.dtype"
SOURCE_KEY: Final = b"datamill.key"

# Marks a 64-bit integer too wide for a double while nested types are merged; `int64` in every result.
_WIDE: Final = pa.uint64()

Path = tuple[str, ...]
Column = Sequence[Any] | pa.Array


@dataclass(slots=True)
class First:
    """Where a kind of value was met first: `_ord` and `path:line`."""

    order: int
    place: str


@dataclass(slots=True)
class ColumnProfile:
    """What a column holds.

    Attributes:
        kinds: kind of value to its first place. Kinds: boolean, integer, long, bigint, number, string, array, object,
            irregular, or the name of an Arrow type that JSON does not have.
        num_values: values that are there and not null.
        nested: merged Arrow type of arrays, objects and other Arrow types.
        fill: path inside nested values to how often something is there; a field is `(..., ".name")`, the elements of
            an array `(..., "[]")`, objects the path they stand at.
    """

    kinds: dict[str, First] = field(default_factory=dict)
    num_values: int = 0
    nested: pa.DataType | None = None
    fill: dict[Path, int] = field(default_factory=dict)

    def merge(self, other: "ColumnProfile") -> None:
        """Take in the profile of later rows."""
        for kind, first in other.kinds.items():
            mine = self.kinds.get(kind)
            if mine is None or first.order < mine.order:
                self.kinds[kind] = first
        self.num_values += other.num_values
        if other.nested is not None:
            self.add_nested(other.nested, other.fill, next(iter(other.kinds.values())))

    def add_nested(self, kind: pa.DataType, fill: dict[Path, int], first: First) -> None:
        """Take in the type and the fill counts of later nested values; what does not fit makes it irregular."""
        merged = kind if self.nested is None else merge_types(self.nested, kind)
        for path, present in fill.items():
            self.fill[path] = self.fill.get(path, 0) + present
        if merged is None or len(self.fill) > MAX_FIELDS:
            self.kinds.setdefault("irregular", first)
            self.fill.clear()
        else:
            self.nested = merged


def resolve(profile: ColumnProfile) -> tuple[str, pa.DataType]:
    """Type name as plans show it, and Arrow type, of a column with this profile."""
    kinds = set(profile.kinds)
    simple = {"boolean": pa.bool_(), "number": pa.float64(), "string": pa.string()}
    scalars = {"boolean", "integer", "long", "bigint", "number", "string"}
    if not kinds:
        arrow = pa.string()
    elif len(kinds) == 1 and (kind := next(iter(kinds))) in simple:
        arrow = simple[kind]
    elif kinds <= {"integer", "long"}:
        arrow = pa.int64()
    elif kinds == {"integer", "number"}:
        arrow = pa.float64()
    elif kinds <= scalars:
        arrow = pa.string()
    elif len(kinds) == 1 and "irregular" not in kinds and profile.nested is not None and _regular(profile):
        arrow = _settled(profile.nested)
    elif any(kind not in scalars | {"array", "object", "irregular"} for kind in kinds):
        arrow = pa.string()
    else:
        return "json", pa.string()
    return str(arrow), arrow


def _regular(profile: ColumnProfile) -> bool:
    assert profile.nested is not None
    fields = [path for path in profile.fill if path and path[-1].startswith(".")]
    present = sum(profile.fill[path] for path in fields)
    possible = sum(profile.fill[path[:-1]] for path in fields)
    return not _has_empty_struct(profile.nested) and present >= MIN_FILL * possible


def _has_empty_struct(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.num_fields == 0 or any(_has_empty_struct(part.type) for part in kind)
    return bool(pa.types.is_list(kind)) and _has_empty_struct(kind.value_type)


def profile_values(values: Sequence[Any], orders: Positions, places: "Places") -> ColumnProfile:
    """Profile of a column of Python values.

    Args:
        values: decoded JSON values, None for null or missing.
        orders: `_ord` of each value.
        places: text for people of each value's place.
    """
    profile = ColumnProfile(num_values=len(values) - sum(value is None for value in values))
    kinds = profile.kinds
    for kind in sorted(set(map(type, values)), key=lambda k: k.__name__):
        if kind is type(None):
            continue
        if kind is int:
            _integer_kinds(values, orders, places, kinds)
            continue
        index = next(i for i, value in enumerate(values) if type(value) is kind)
        name = {bool: "boolean", float: "number", str: "string", list: "array", dict: "object"}[kind]
        kinds[name] = First(int(orders[index]), places(index))
        if kind in {list, dict}:
            _observe_nested(profile, [value for value in values if type(value) is kind], kinds[name])
    return profile


def _observe_nested(profile: ColumnProfile, values: Sequence[Any], first: First) -> None:
    # In slices, because objects with ever new keys would make one array of rows x keys cells.
    for start in range(0, len(values), SLICE_ROWS):
        if "irregular" in profile.kinds:
            return
        array = nested_array(values[start : start + SLICE_ROWS])
        if array is None:
            profile.kinds["irregular"] = first
        else:
            profile.add_nested(*nested_profile(array), first)


class Places:
    """Text `path:line` of a row of a block, made only for the few that are shown."""

    def __init__(self, display: str, lines: Positions) -> None:
        self.display = display
        self._lines = lines

    def __call__(self, index: int) -> str:
        """`path:line` of row `index`."""
        return f"{self.display}:{int(self._lines[index])}"


def _integer_kinds(values: Sequence[Any], orders: Positions, places: Places, kinds: dict[str, First]) -> None:
    whole = [value for value in values if type(value) is int]
    low, high = min(whole), max(whole)
    narrow = low >= -EXACT and high <= EXACT
    names = {"integer"} if narrow else {_integer_kind(value) for value in whole}
    for name in names:
        index = next(i for i, v in enumerate(values) if type(v) is int and _integer_kind(v) == name)
        kinds[name] = First(int(orders[index]), places(index))


def _integer_kind(value: int) -> str:
    if -EXACT <= value <= EXACT:
        return "integer"
    return "long" if -(1 << 63) <= value < 1 << 63 else "bigint"


def nested_array(values: Sequence[Any]) -> pa.Array | None:
    """Arrow array of arrays or objects; None when their inner types do not agree."""
    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return None
    if _has_double(array.type) and any(_holds_boolean(value, array.type) for value in values):
        return None
    return array


def _has_double(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_double(part.type) for part in kind)
    return bool(_has_double(kind.value_type) if pa.types.is_list(kind) else pa.types.is_floating(kind))


def _holds_boolean(value: Any, kind: pa.DataType) -> bool:
    """Whether Arrow made a number of `true`: it does so beside decimals and nowhere else."""
    if value is None or not _has_double(kind):
        return False
    if pa.types.is_list(kind):
        if pa.types.is_floating(kind.value_type):
            return bool in set(map(type, value))
        return any(_holds_boolean(item, kind.value_type) for item in value)
    if pa.types.is_struct(kind):
        return any(_holds_boolean(value.get(part.name), part.type) for part in kind)
    return type(value) is bool


def nested_profile(array: pa.Array, path: Path = ()) -> tuple[pa.DataType, dict[Path, int]]:
    """Type of nested values with wide integers marked, and how often each field of an object is there."""
    kind = array.type
    if pa.types.is_list(kind):
        inner, fill = nested_profile(array.flatten(), (*path, "[]"))
        return pa.list_(inner), fill
    if not pa.types.is_struct(kind):
        return (_WIDE if pa.types.is_int64(kind) and _is_wide(array) else kind), {}
    valid = array.drop_null()
    fill = {path: len(valid)}
    fields = []
    for part in kind:
        child = valid.field(part.name)
        where = (*path, f".{part.name}")
        fill[where] = len(child) - child.null_count
        inner, deeper = nested_profile(child, where)
        fields.append(pa.field(part.name, inner))
        fill.update(deeper)
    return pa.struct(fields), fill


def _is_wide(array: pa.Array) -> bool:
    bounds = pc.min_max(array)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return low is not None and (low < -EXACT or high > EXACT)


def merge_types(one: pa.DataType, two: pa.DataType) -> pa.DataType | None:
    """The type that holds both without loss, or None."""
    if one == two or pa.types.is_null(two):
        return one
    if pa.types.is_null(one):
        return two
    if pa.types.is_list(one) and pa.types.is_list(two):
        inner = merge_types(one.value_type, two.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(one) and pa.types.is_struct(two):
        return _merge_structs(one, two)
    pair = {one, two}
    if pair == {pa.int64(), _WIDE}:
        return _WIDE
    return pa.float64() if pa.float64() in pair and pair & {pa.int64(), pa.float32()} else None


def _merge_structs(one: pa.StructType, two: pa.StructType) -> pa.DataType | None:
    fields: list[pa.Field] = []
    names = dict.fromkeys([part.name for part in one] + [part.name for part in two])
    for name in names:
        mine, theirs = one.get_field_index(name), two.get_field_index(name)
        if mine < 0 or theirs < 0:
            fields.append(pa.field(name, two.field(theirs).type if mine < 0 else one.field(mine).type))
            continue
        inner = merge_types(one.field(mine).type, two.field(theirs).type)
        if inner is None:
            return None
        fields.append(pa.field(name, inner))
    return pa.struct(fields)


def _settled(kind: pa.DataType) -> pa.DataType:
    """Final form of a merged type: no wide marks, no null types."""
    if pa.types.is_list(kind):
        return pa.list_(_settled(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _settled(part.type)) for part in kind])
    if kind == _WIDE:
        return pa.int64()
    return pa.string() if pa.types.is_null(kind) else kind
