"""What all of the data says about its columns: the pass before the types are fixed.

A `Profile` of a chunk is small, picklable and mergeable, so chunks can be profiled on any number of workers. Costs:
one parse of the data.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from datamill.services.reading.blocks import Block, as_orders
from datamill.services.reading.columns import (
    ColumnProfile,
    First,
    Places,
    profile_values,
)
from datamill.services.reading.source import FileEntry

_ARROW_KINDS: Final = {pa.bool_(): "boolean", pa.string(): "string", pa.float64(): "number"}


@dataclass(slots=True)
class Profile:
    """Columns and counts of some rows.

    Attributes:
        columns: name to what it holds.
        num_rows: rows read.
        num_bad: records refused.
        num_blank: blank lines passed over.
        rows_of_file: file index to records (rows and refused ones) met in it.
    """

    columns: dict[str, ColumnProfile] = field(default_factory=dict)
    num_rows: int = 0
    num_bad: int = 0
    num_blank: int = 0
    rows_of_file: dict[int, int] = field(default_factory=dict)

    def observe(self, block: Block, file: FileEntry) -> None:
        """Take in a block that follows everything seen so far."""
        self.num_rows += block.num_rows
        self.num_bad += len(block.bad)
        self.num_blank += block.num_blank
        met = self.rows_of_file.get(file.index, 0)
        self.rows_of_file[file.index] = met + block.num_rows + len(block.bad)
        orders = as_orders(file.index, block.offsets)
        places = Places(file.display, block.lines)
        for name, values in block.columns.items():
            found = _profile_column(values, orders, places)
            if name in self.columns:
                self.columns[name].merge(found)
            else:
                self.columns[name] = found

    def merge(self, other: "Profile") -> None:
        """Take in the profile of rows that follow."""
        for name, column in other.columns.items():
            if name in self.columns:
                self.columns[name].merge(column)
            else:
                self.columns[name] = column
        self.num_rows += other.num_rows
        self.num_bad += other.num_bad
        self.num_blank += other.num_blank
        for index, count in other.rows_of_file.items():
            self.rows_of_file[index] = self.rows_of_file.get(index, 0) + count


def _profile_column(values: Any, orders: Any, places: Places) -> ColumnProfile:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _profile_arrow(values, orders, places)
    return profile_values(values, orders, places)


def _profile_arrow(values: Any, orders: Any, places: Places) -> ColumnProfile:
    first = First(int(orders[0]), places(0)) if len(orders) else First(0, places.display)
    profile = ColumnProfile(num_values=len(values) - values.null_count)
    kind = values.type
    if pa.types.is_null(kind) or profile.num_values == 0:
        return profile
    if pa.types.is_int64(kind):
        return profile_values(values.to_pylist(), orders, places)
    if kind in _ARROW_KINDS:
        profile.kinds[_ARROW_KINDS[kind]] = first
    elif pa.types.is_list(kind) or pa.types.is_struct(kind):
        profile.kinds["array" if pa.types.is_list(kind) else "object"] = first
        profile.nested = kind
    else:
        profile.kinds[str(kind)] = first
        profile.nested = kind
    return profile
