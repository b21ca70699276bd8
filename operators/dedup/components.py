"""Connected components on the engine's primitives: no machine ever holds all edges.

Every round is two shuffles. In the large star every node hangs its larger neighbours below the smallest node it can
see; in the small star it does the same with itself and its smaller neighbours. Both keep the components; when a
round changes nothing every component is one star below its smallest node.

Cost: two shuffles of the edges a round (16 bytes an edge and direction); the number of rounds grows with the logarithm
of the longest path. Only two numbers a round reach the driver.

Source: Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii, "Connected Components in MapReduce and Beyond" (SoCC 2014),
the alternating algorithm.
"""

from typing import Final

import polars as pl
import pyarrow as pa

from datamill.errors import DatamillError
from datamill.services.engines.protocol import Dataset

NODE: Final = "node"
OTHER: Final = "other"
COMPONENT: Final = "component"
MAX_ROUNDS: Final[int] = 64
"""Far beyond what any graph that fits on disks takes: two nodes a round halve a path."""


def connected(edges: Dataset) -> Dataset:
    """Component of every node that has an edge.

    Args:
        edges: `left`, `right` (uint64), in either order; repeats do no harm, loops are no edges.

    Returns:
        `node`, `component` (uint64), one row a node; a component is named by its smallest node.
    """
    current = edges.map_tables(both_ways, columns=["left", "right"])
    signature: tuple[int, int] | None = None
    for _ in range(MAX_ROUNDS):
        large = current.shuffle(NODE, large_star).map_tables(downwards)
        stars = large.shuffle(NODE, small_star).keep()
        found = _signature(stars)
        if found == signature:
            return stars.map_tables(with_roots).shuffle(NODE, distinct_nodes)
        signature = found
        current = stars.map_tables(both_ways)
    raise DatamillError("DM-DEDUP-008", f"components did not settle in {MAX_ROUNDS} rounds", fix="report this as a bug")


def both_ways(table: pa.Table) -> pa.Table:
    """Every edge from both of its ends; loops say nothing and are left out."""
    frame = pl.DataFrame(table)
    left, right = frame.columns[:2]
    frame = frame.filter(pl.col(left) != pl.col(right))
    ways = [frame.select(pl.col(a).alias(NODE), pl.col(b).alias(OTHER)) for a, b in ((left, right), (right, left))]
    return _table(pl.concat(ways))


def downwards(table: pa.Table) -> pa.Table:
    """Every edge from its larger end."""
    return _table(
        pl.DataFrame(table).select(
            pl.max_horizontal(NODE, OTHER).alias(NODE), pl.min_horizontal(NODE, OTHER).alias(OTHER)
        )
    )


def large_star(table: pa.Table) -> pa.Table:
    """Larger neighbours of every node, hung below the smallest node it sees."""
    seen = pl.DataFrame(table).unique().with_columns(low=pl.min_horizontal(pl.col(OTHER).min().over(NODE), NODE))
    return _table(
        seen.filter(pl.col(OTHER) > pl.col(NODE)).select(pl.col(OTHER).alias(NODE), pl.col("low").alias(OTHER))
    )


def small_star(table: pa.Table) -> pa.Table:
    """Every node and its smaller neighbours, hung below the smallest of them."""
    seen = pl.DataFrame(table).unique().with_columns(low=pl.col(OTHER).min().over(NODE))
    others = seen.filter(pl.col(OTHER) > pl.col("low")).select(pl.col(OTHER).alias(NODE), pl.col("low").alias(OTHER))
    own = seen.filter(pl.col(NODE) > pl.col("low")).select(NODE, pl.col("low").alias(OTHER))
    return _table(pl.concat([others, own]).unique())


def with_roots(table: pa.Table) -> pa.Table:
    """Nodes with the root they hang below, roots included."""
    frame = pl.DataFrame(table)
    roots = frame.select(pl.col(OTHER).alias(NODE), pl.col(OTHER).alias(COMPONENT))
    return pl.concat([frame.select(NODE, pl.col(OTHER).alias(COMPONENT)), roots]).to_arrow()


def distinct_nodes(table: pa.Table) -> pa.Table:
    """One row a node; the engine has brought all rows of a node together."""
    return pl.DataFrame(table).unique().to_arrow()


def _table(frame: pl.DataFrame) -> pa.Table:
    return frame.select(pl.col(NODE).cast(pl.UInt64), pl.col(OTHER).cast(pl.UInt64)).to_arrow()


def _signature(stars: Dataset) -> tuple[int, int]:
    """Number of edges and a sum over their hashes, which no order and no cut changes."""
    parts = stars.map_tables(_signed).collect().to_pylist()
    return sum(part["edges"] for part in parts), sum(part["hashes"] for part in parts) % 2**64


def _signed(table: pa.Table) -> pa.Table:
    frame = pl.DataFrame(table)
    hashes = frame.hash_rows(seed=1).to_numpy()
    total = int(hashes.sum(dtype="uint64")) if frame.height else 0
    return pa.table({"edges": pa.array([frame.height], pa.int64()), "hashes": pa.array([total], pa.uint64())})
