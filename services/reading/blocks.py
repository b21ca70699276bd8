"""Blocks: columns of one stretch of a file with positions, the common form of all formats before typing.

JSON gives Python values (their types are only known once all data is seen); CSV, text and Parquet give Arrow arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from datamill.services.reading.columns import Column
from datamill.services.reading.jsonrows import JsonRows, Note
from datamill.services.reading.lines import Positions
from datamill.services.reading.source import BadRecord
from datamill.services.records import CHILD_BITS, OFFSET_BITS


@dataclass(slots=True)
class Block:
    """Rows of one stretch of a file.

    Attributes:
        columns: name to values, in order of first appearance.
        offsets: position of each record, int64; the row number for Parquet.
        lines: 1-based line of each record, int64; the row number for Parquet.
        raws: raw JSON objects where there are any, for values that are kept as written.
        bad: refused records.
        notes: remarks on rows.
        num_blank: blank lines passed over.
    """

    columns: dict[str, Column]
    offsets: Positions
    lines: Positions
    raws: list[bytes] | None = None
    bad: list[BadRecord] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    num_blank: int = 0

    @property
    def num_rows(self) -> int:
        """Rows of the block."""
        return len(self.offsets)


def json_block(parsed: JsonRows, wanted: frozenset[str] | None = None) -> Block:
    """Columns of parsed objects: the union of their keys, None where a key is missing.

    Args:
        parsed: the objects.
        wanted: keys to keep; all when None.
    """
    rows = parsed.rows
    key_sets = set(map(tuple, rows))
    keys = dict.fromkeys(key for row_keys in _first_seen(key_sets, rows) for key in row_keys)
    uniform = len(key_sets) == 1
    columns: dict[str, Column] = {}
    for key in keys:
        if wanted is None or key in wanted:
            take: Callable[[dict[str, Any]], Any] = itemgetter(key) if uniform else _get(key)
            columns[key] = list(map(take, rows))
    return Block(columns, parsed.offsets, parsed.lines, parsed.raws, parsed.bad, parsed.notes, parsed.num_blank)


def _first_seen(key_sets: set[tuple[str, ...]], rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The distinct key sets in the order of the rows, whatever the hash seed of the process."""
    if len(key_sets) <= 1:
        return list(key_sets)
    return list(dict.fromkeys(map(tuple, rows)))


def _get(key: str) -> Callable[[dict[str, Any]], Any]:
    def take(row: dict[str, Any]) -> Any:
        return row.get(key)

    return take


def as_orders(file_index: int, offsets: Positions) -> Positions:
    """`_ord` of records, vectorised; see `records.row_order`."""
    orders: Positions = np.left_shift(offsets, CHILD_BITS) | np.int64(file_index << (OFFSET_BITS + CHILD_BITS))
    return orders
