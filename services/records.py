"""What a row carries besides its own columns: a stable id, a total order, and where it came from.

Every row that enters datamill gets three system columns:

* `_id` (string, 32 hex digits): xxh3-128 of the source name and the position of the record in it. It does not
  depend on the engine, the number of partitions or the order in which shards are visited.
* `_ord` (int64): source file index, byte offset of the record and child number packed into one integer, so that
  sorting by `(_ord, _id)` gives the order of the input. Ties between duplicates are broken by this order.
* `_src` (string): `path:line` for people.

A row that leaves the main flow leaves a *fate* behind (see `FATE_SCHEMA`); rows and fates of a step must balance.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa
import xxhash

ID: Final = "_id"
ORD: Final = "_ord"
SRC: Final = "_src"
SYSTEM_COLUMNS: Final = (ID, ORD, SRC)
SYSTEM_FIELDS: Final = (
    pa.field(ID, pa.string(), nullable=False),
    pa.field(ORD, pa.int64(), nullable=False),
    pa.field(SRC, pa.string(), nullable=False),
)

CHILD_BITS: Final[int] = 10
OFFSET_BITS: Final[int] = 40
MAX_CHILDREN: Final[int] = 1 << CHILD_BITS
MAX_FILES: Final[int] = 1 << (63 - CHILD_BITS - OFFSET_BITS)


class Fate(StrEnum):
    """Why a row is not among the output of a step (or, for `expanded` and `routed`, how it became more)."""

    DROPPED = "dropped"
    NOT_SELECTED = "not_selected"
    QUARANTINED = "quarantined"
    MERGED = "merged"
    FAILED = "failed"
    EXPANDED = "expanded"
    NOTED = "noted"
    """A remark on a row that stays (repaired surrogate, tagged value); never part of the balance."""


FATE_SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string()),  # `_id` of the row; for quarantined records the id the row would have had
        pa.field("fate", pa.string()),  # a value of `Fate`
        pa.field("reason", pa.string()),  # short stable slug, e.g. `too_short`
        pa.field("value", pa.float64()),  # the measured number the decision rests on, if there is one
        pa.field("threshold", pa.float64()),  # the bound it was held against
        pa.field("into", pa.string()),  # `_id` of the surviving row for `merged`, of the parent for `expanded`
        pa.field("detail", pa.string()),  # text for people: error message, matched rule, raw bytes (truncated)
        pa.field("src", pa.string()),  # `path:line` where known
        pa.field("offset", pa.int64()),  # byte offset in the (decompressed) source, for quarantined records
    ]
)


def row_id(source: str, position: int, child: int = 0) -> str:
    """Stable id of the record at byte `position` of `source`; `child` numbers rows cut out of one record."""
    return xxhash.xxh3_128_hexdigest(f"{source}\0{position}\0{child}".encode())


def child_id(parent: str, index: int) -> str:
    """Stable id of the `index`-th row expanded from `parent`."""
    return xxhash.xxh3_128_hexdigest(f"{parent}\0{index}".encode())


def row_order(file_index: int, offset: int, child: int = 0) -> int:
    """Pack a position into the 63 usable bits of `_ord`."""
    return (file_index << (OFFSET_BITS + CHILD_BITS)) | (offset << CHILD_BITS) | min(child, MAX_CHILDREN - 1)


def order_offset(order: int) -> int:
    """The byte offset packed into an `_ord` value."""
    return (order >> CHILD_BITS) & ((1 << OFFSET_BITS) - 1)


def fates(records: Sequence[Mapping[str, Any]] = ()) -> pa.Table:
    """A fate table from dictionaries; absent fields are null.

    Raises:
        KeyError: when a record has a field that `FATE_SCHEMA` does not know.
    """
    known = set(FATE_SCHEMA.names)
    for record in records:
        if not known.issuperset(record):
            raise KeyError(f"unknown fate fields {sorted(set(record) - known)}")
    return pa.Table.from_pylist(list(records), schema=FATE_SCHEMA)
