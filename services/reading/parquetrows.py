"""Parquet files to rows, row group by row group; any type, nested ones and nulls included.

Promises: values keep their type; dictionaries and large or view strings become their plain form. Costs: one batch in
memory. Format: Apache Parquet, read by Arrow's C++ reader.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamill.errors import DatamillError
from datamill.services.reading.blocks import Block
from datamill.services.reading.source import Chunk, FileEntry, SourceSpec


@contextmanager
def open_parquet(file: FileEntry) -> Iterator[pq.ParquetFile]:
    """The open file.

    Raises:
        DatamillError: `DM-READ-012` when the file is damaged or no Parquet file.
    """
    try:
        with pq.ParquetFile(file.path) as handle:
            yield handle
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DatamillError(
            "DM-READ-012", f"the Parquet file cannot be read: {str(error).splitlines()[0]}", file=file.display
        ) from error


def read_parquet(spec: SourceSpec, chunk: Chunk) -> Iterator[Block]:
    """Blocks of the row groups of a chunk."""
    with open_parquet(chunk.file) as handle:
        groups = list(range(chunk.start, chunk.end))
        row = chunk.first_line - 1
        names = None if spec.columns is None else [n for n in handle.schema_arrow.names if n in spec.columns]
        for batch in handle.iter_batches(spec.shard_rows, row_groups=groups, columns=names):
            positions = np.arange(row, row + batch.num_rows, dtype=np.int64)
            columns = {name: plain(batch.column(i)) for i, name in enumerate(batch.schema.names)}
            row += batch.num_rows
            yield Block(columns, positions, positions + 1)


def plain(array: pa.Array) -> pa.Array:
    """The array without encodings that only save space; unsigned numbers beyond 64 bits become text."""
    kind = plain_type(array.type)
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        kind = pa.float64()
    if kind == array.type:
        return array
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        if pa.types.is_nested(kind):
            raise
        return array.cast(pa.string())


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without dictionary, large and view variants, integers widened to 64 bits."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_list(kind) or pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, plain_type(part.type)) for part in kind])
    if pa.types.is_integer(kind):
        return pa.int64()
    return _PLAIN.get(kind, kind)


_PLAIN = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
