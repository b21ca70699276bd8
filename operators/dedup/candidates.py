"""The distributed part of near-duplicate search, written on the engine's primitives alone.

1. `map_tables`: every partition turns its texts into `(key, content, row)` band keys;
2. `shuffle` by key: rows that share a key become candidate pairs;
3. `map_tables` + `shuffle` by candidate component: the texts of each component meet once and their pairs are held
   against the threshold by exact Jaccard.

Only pairs, 64-bit row hashes and, at the end, the ids of rows with a duplicate reach the driver; texts never do.
Pairs too many for it go another way, see `clustering`.

Cost: one pass over all texts and one over candidate texts; `24 * bands` bytes a row travel in the first shuffle.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datamill.operators.dedup.clusters import RANK, ROW, rank_values
from datamill.services.engines.protocol import Dataset
from datamill.services.minhash.settings import SketchSettings
from datamill.services.records import ID, ORD

if TYPE_CHECKING:  # numba loads when a sketch is made, not when operators are listed
    from datamill.services.minhash.sketch import Sketches

BLOCK_BYTES: Final[int] = 16 << 20
"""Text whose shingle sets are held at once while pairs are verified."""

KEY_SCHEMA: Final = pa.schema(
    [pa.field("key", pa.uint64()), pa.field("content", pa.uint64()), pa.field(ROW, pa.uint64())]
)
EDGE_SCHEMA: Final = pa.schema(
    [pa.field("left", pa.uint64()), pa.field("right", pa.uint64()), pa.field("value", pa.float64())]
)


def candidates(data: Dataset, column: str, settings: SketchSettings) -> Dataset:
    """Pairs of rows that share a band key, computed once: `left`, `right`, `same`; a pair may occur more than once."""
    keys = data.map_tables(partial(band_key_table, column=column, settings=settings), columns=[ID, column])
    return keys.shuffle("key", pair_table).keep()


def pairs_on_the_driver(
    data: Dataset, column: str, settings: SketchSettings, threshold: float, found: Dataset
) -> pl.DataFrame:
    """Pairs of near-duplicate rows, from candidates that fit into the driver's memory; texts are compared in place.

    Returns:
        `left`, `right` (row hashes, `left < right`) and `value`: the exact Jaccard similarity, at least `threshold`;
        without verification every pair that shares a band, with 1 for equal texts and null for others.
    """
    pairs = pl.DataFrame(found.collect())
    pairs = pairs.group_by("left", "right").agg(pl.col("same").any()).sort("left", "right")
    equal = pairs.filter(pl.col("same")).select("left", "right", value=pl.lit(1.0))
    open_pairs = pairs.filter(~pl.col("same")).select("left", "right")
    if settings.verify == "none":
        checked = open_pairs.with_columns(value=pl.lit(None, pl.Float64))
    elif open_pairs.is_empty():
        return equal
    else:
        checked = _verified(data, column, settings, threshold, open_pairs)
    return pl.concat([equal, checked]).sort("left", "right")


def member_table(data: Dataset, edges: pl.DataFrame, keep: str, column: str, best: str | None) -> pa.Table:
    """`row`, `_id`, `_ord` and `rank` of the rows that occur in `edges`, on the driver."""
    nodes = _nodes(edges)
    columns = list(dict.fromkeys([ID, ORD, *([best] if best else []), *([column] if keep == "longest" else [])]))
    chosen = partial(_members, nodes=nodes, keep=keep, column=column)
    return data.map_tables(chosen, columns=columns).collect()


def band_key_table(table: pa.Table, *, column: str, settings: SketchSettings) -> pa.Table:
    """Band keys of the non-blank texts of a partition, in `KEY_SCHEMA`, `bands` records a row."""
    from datamill.services.minhash.sketch import row_hashes

    sketches = sketch(table[column], settings)
    live = np.flatnonzero(sketches.counts > 0)
    bands = sketches.keys.shape[1]
    rows = row_hashes(table[ID])[live]
    return pa.table(
        [sketches.keys[live].ravel(), np.repeat(sketches.contents[live], bands), np.repeat(rows, bands)],
        schema=KEY_SCHEMA,
    )


def sketch(column: pa.Array | pa.ChunkedArray, settings: SketchSettings) -> "Sketches":
    """Sketches by the backend that `settings` name."""
    if settings.backend == "datasketch":
        from datamill.services.minhash.oracle import sketch_with_datasketch

        return sketch_with_datasketch(column, settings)
    from datamill.services.minhash.sketch import sketch_column

    return sketch_column(column, settings)


def pair_table(table: pa.Table) -> pa.Table:
    """Distinct candidate pairs among band keys sorted by key: `left`, `right`, `same`."""
    from datamill.services.minhash.pairs import candidate_pairs

    keys, contents, rows = (table[name].to_numpy() for name in KEY_SCHEMA.names)
    left, right, same = candidate_pairs(keys, contents, rows)
    frame = pl.DataFrame({"left": left, "right": right, "same": same}).unique()
    return frame.to_arrow()


def _verified(
    data: Dataset, column: str, settings: SketchSettings, threshold: float, pairs: pl.DataFrame
) -> pl.DataFrame:
    """The `pairs` whose exact Jaccard similarity reaches `threshold`, computed where the texts are."""
    from datamill.services.minhash.pairs import connected_components

    nodes = _nodes(pairs)
    left = np.searchsorted(nodes, pairs.get_column("left").to_numpy())
    right = np.searchsorted(nodes, pairs.get_column("right").to_numpy())
    component = connected_components(len(nodes), left, right)
    tagged = pairs.with_columns(component=pl.Series(component[left])).sort("component", "left", "right")
    texts = data.map_tables(
        partial(_candidate_texts, nodes=nodes, component=component, column=column), columns=[ID, column]
    )
    check = partial(
        verify_table, pairs=tagged.to_arrow(), unit=settings.unit, ngram=settings.ngram, threshold=threshold
    )
    return pl.DataFrame(texts.shuffle("component", check).collect())


def _candidate_texts(
    table: pa.Table, *, nodes: NDArray[np.uint64], component: NDArray[np.int64], column: str
) -> pa.Table:
    rows, place, hit = _locate(table, nodes)
    return pa.table(
        {
            "component": pa.array(component[place[hit]], pa.int64()),
            ROW: pa.array(rows[hit], pa.uint64()),
            "text": table[column].filter(pa.array(hit)).cast(pa.large_string()),
        }
    )


def _members(table: pa.Table, *, nodes: NDArray[np.uint64], keep: str, column: str) -> pa.Table:
    rows, _, hit = _locate(table, nodes)
    chosen = table.filter(pa.array(hit))
    return pa.table(
        {
            ROW: pa.array(rows[hit], pa.uint64()),
            ID: chosen[ID],
            ORD: chosen[ORD],
            RANK: rank_values(chosen, keep, (column,)),
        }
    )


def _locate(
    table: pa.Table, nodes: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.bool_]]:
    """Row hashes of a partition, their place among the sorted `nodes`, and whether they are there."""
    from datamill.services.minhash.sketch import row_hashes

    rows = row_hashes(table[ID])
    place = np.minimum(np.searchsorted(nodes, rows), max(0, len(nodes) - 1))
    return rows, place, nodes[place] == rows if len(nodes) else np.zeros(len(rows), np.bool_)


def _nodes(pairs: pl.DataFrame) -> NDArray[np.uint64]:
    return np.unique(np.concatenate([pairs.get_column("left").to_numpy(), pairs.get_column("right").to_numpy()]))


def verify_table(table: pa.Table, *, pairs: pa.Table, unit: str, ngram: int, threshold: float) -> pa.Table:
    """Exact Jaccard of the pairs of whole components; those that reach `threshold`, in `EDGE_SCHEMA`.

    Args:
        table: `component`, `row`, `text`, sorted by component.
        pairs: `left`, `right`, `component`, sorted by component (broadcast; holds other components' pairs too).
        unit: shingle unit.
        ngram: tokens a shingle.
        threshold: smallest similarity kept.
    """
    from datamill.services.minhash import pairs as compiled
    from datamill.services.minhash.sketch import shingle_set_arrays

    left, right, component = (pairs[name].to_numpy() for name in ("left", "right", "component"))
    found = [EDGE_SCHEMA.empty_table()]
    for low, high in _blocks(table):
        block = table.slice(low, high - low)
        flat, limits = shingle_set_arrays(block["text"], unit, ngram)  # type: ignore[arg-type]  # a Unit by the params
        own = block["component"].to_numpy()
        start, stop = np.searchsorted(component, own[0], "left"), np.searchsorted(component, own[-1], "right")
        mine = start + np.flatnonzero(np.isin(component[start:stop], own))  # a partition holds any of the components
        order = np.argsort(rows := block[ROW].to_numpy())
        a, b = left[mine], right[mine]
        value = compiled.jaccards(
            flat, limits, order[np.searchsorted(rows, a, sorter=order)], order[np.searchsorted(rows, b, sorter=order)]
        )
        keep = value >= threshold
        found.append(pa.table([a[keep], b[keep], value[keep]], schema=EDGE_SCHEMA))
    return pa.concat_tables(found)


def _blocks(table: pa.Table) -> Iterator[tuple[int, int]]:
    """Runs of whole components of about `BLOCK_BYTES` of text: first and past-last row."""
    if not table.num_rows:
        return
    component = table["component"].to_numpy()
    size = np.cumsum(pc.binary_length(table["text"]).to_numpy())
    edges = np.append(np.flatnonzero(component[1:] != component[:-1]) + 1, len(component))
    low, base = 0, 0
    for edge in edges:
        if size[edge - 1] - base >= BLOCK_BYTES or edge == len(component):
            yield low, int(edge)
            low, base = int(edge), int(size[edge - 1])
