"""From verified pairs to clusters, one representative each, and a decision for every row.

The representative is chosen by a total order (`keep`, then `(_ord, _id)`), so it depends on the rows alone: not on
partitions, not on who arrived first.

Cost: on the driver, memory for the rows that have a duplicate (never for the others).
"""

from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from datamill.errors import DatamillError
from datamill.services.records import ID, ORD, Fate

RANK: Final = "rank"
ROW: Final = "row"
KEEP_PATTERN: Final = r"^(first|longest|best:.+)$"
_STRUCTURE: Final = {
    ID: pl.String, "fate": pl.String, "reason": pl.String, "value": pl.Float64, "threshold": pl.Float64,
    "into": pl.String, "detail": pl.String, "cluster_id": pl.String, "cluster_size": pl.Int64,
}  # fmt: skip


def best_column(keep: str) -> str | None:
    """The column named by `best:<column>`, or None."""
    return keep.removeprefix("best:") if keep.startswith("best:") else None


def rank_values(table: pa.Table, keep: str, text_columns: tuple[str, ...]) -> pa.Array | pa.ChunkedArray:
    """What `keep` ranks rows by, float64, higher first: nothing, code points of the texts, or the best column."""
    name = best_column(keep)
    if name is not None:
        column = table[name].cast(pa.float64(), safe=False)  # integers beyond 2^53 may tie: then order decides
        return pc.if_else(pc.is_nan(column), None, column)
    if keep == "longest":
        lengths = [pc.fill_null(pc.utf8_length(table[c].cast(pa.string())), 0) for c in text_columns]
        total = lengths[0]
        for length in lengths[1:]:
            total = pc.add(total, length)
        return total.cast(pa.float64())
    return pa.nulls(table.num_rows, pa.float64())


def best_first(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows ordered by rank (highest first, absent last), then by `(_ord, _id)`."""
    return frame.sort([RANK, ORD, ID], descending=[True, False, False], nulls_last=True)


def cluster_decisions(
    members: pa.Table, edges: pl.DataFrame, *, threshold: float, action: str, reason: str = "near_duplicate"
) -> pa.Table:
    """Decisions about all rows that have a duplicate.

    Args:
        members: `row` (uint64), `_id`, `_ord` and `rank` of every row that occurs in `edges`.
        edges: `left`, `right` (rows, uint64) and `value` (Jaccard, null when not verified) of duplicate pairs.
        threshold: the bound the pairs were held against.
        action: `keep_one` or `drop_all`.
        reason: slug for removed rows.

    Returns:
        Table with the columns of `_STRUCTURE`, one row per member. A removed row's `value` is the similarity to its
        representative where that pair was compared, otherwise the highest among its compared pairs, with the other
        row named in `detail`.

    Raises:
        DatamillError: `DM-DEDUP-005` when two rows carry the same `_id`.
    """
    from datamill.services.minhash.pairs import connected_components

    frame = pl.DataFrame(members).sort([ORD, ID]).with_row_index("node")
    if frame.get_column(ROW).n_unique() != frame.height:
        raise _repeated_id(frame)
    ranked = frame.sort(ROW)
    rows, nodes = ranked.get_column(ROW).to_numpy(), ranked.get_column("node").to_numpy()
    left = nodes[np.searchsorted(rows, edges.get_column("left").to_numpy())].astype(np.int64)
    right = nodes[np.searchsorted(rows, edges.get_column("right").to_numpy())].astype(np.int64)
    labels = connected_components(frame.height, left, right)
    clustered = frame.with_columns(label=pl.Series(labels))
    leaders = best_first(clustered).group_by("label", maintain_order=True).agg(
        pl.col("node").first().alias("leader"), pl.col(ID).first().alias("cluster_id"), pl.len().alias("cluster_size")
    )  # fmt: skip
    clustered = clustered.join(leaders, on="label", how="left", maintain_order="left")
    pairs = pl.DataFrame({"left": left, "right": right, "value": edges.get_column("value")})
    witnessed = clustered.join(_witnesses(clustered, pairs), on="node", how="left", maintain_order="left")
    return _decided(witnessed, threshold, action, reason).to_arrow().cast(decision_schema())


def _witnesses(clustered: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """For every node its strongest compared pair, the representative's first: `node`, `value`, `witness`."""
    both = pl.concat([pairs, pairs.select(left="right", right="left", value="value")])
    both = both.select(node=pl.col("left").cast(pl.UInt32), other=pl.col("right").cast(pl.UInt32), value="value")
    both = both.join(clustered.select("node", "leader"), on="node").with_columns(
        direct=pl.col("other") == pl.col("leader")
    )
    order = both.sort(["node", "direct", "value", "other"], descending=[False, True, True, False], nulls_last=True)
    first = order.group_by("node", maintain_order=True).first()
    names = clustered.select(pl.col("node").alias("other"), pl.col(ID).alias("witness"))
    return first.join(names, on="other", how="left").select("node", "value", "witness", "direct")


def _decided(frame: pl.DataFrame, threshold: float, action: str, reason: str) -> pl.DataFrame:
    leads = pl.col("node") == pl.col("leader")
    if action == "drop_all":
        gone, fate, why = pl.lit(value=True), Fate.DROPPED, f"{reason}_group"
        detail = pl.concat_str([pl.lit("cluster "), "cluster_id"])
        into = pl.lit(None, pl.String)
    else:
        gone, fate, why = ~leads, Fate.MERGED, reason
        detail = pl.when(~pl.col("direct")).then(pl.concat_str([pl.lit("through "), "witness"]))
        into = pl.col("cluster_id")
    return frame.sort(ORD, ID).select(
        ID,
        fate=pl.when(gone).then(pl.lit(str(fate))),
        reason=pl.when(gone).then(pl.lit(why)),
        value=pl.when(gone).then(pl.col("value")),
        threshold=pl.when(gone).then(pl.lit(threshold)),
        into=pl.when(gone).then(into),
        detail=pl.when(gone).then(detail),
        cluster_id="cluster_id",
        cluster_size=pl.col("cluster_size").cast(pl.Int64),
    )


def decision_schema(*, clusters: bool = True) -> pa.Schema:
    """Arrow schema of decisions, with or without the cluster columns."""
    kinds = {pl.String: pa.string(), pl.Float64: pa.float64(), pl.Int64: pa.int64()}
    fields = [pa.field(name, kinds[kind]) for name, kind in _STRUCTURE.items()]
    return pa.schema(fields if clusters else fields[:-2])


def no_decisions(*, clusters: bool = True) -> pa.Table:
    """An empty table of decisions."""
    return decision_schema(clusters=clusters).empty_table()


def with_decisions(rows: pl.DataFrame, decided: pa.Table, *, clusters: bool = True) -> pa.Table:
    """One decision per row of `rows`, in their order.

    Args:
        rows: `_id` and optionally `fate` and `reason` of rows decided on their own (blank, null).
        decided: decisions about some of the rows.
        clusters: whether to add `cluster_id` (own `_id`) and `cluster_size` (1) to rows without a decision.
    """
    own: dict[str, Any] = {name: pl.col(f"own_{name}") for name in ("fate", "reason") if name in rows.columns}
    renamed = rows.rename({name: f"own_{name}" for name in own}).cast({ID: pl.String})
    joined = renamed.join(pl.DataFrame(decided), on=ID, how="left", maintain_order="left")
    joined = joined.with_columns(**{name: pl.coalesce(name, column) for name, column in own.items()})
    if clusters:
        joined = joined.with_columns(pl.col("cluster_id").fill_null(pl.col(ID)), pl.col("cluster_size").fill_null(1))
    schema = decision_schema(clusters=clusters)
    return joined.select(schema.names).to_arrow().cast(schema)


def _repeated_id(frame: pl.DataFrame) -> DatamillError:
    first = frame.filter(pl.col(ROW).is_duplicated()).get_column(ID)[0]
    return DatamillError(
        "DM-DEDUP-005", f"two rows carry the same `_id` {first}", expected="one id a row",
        fix="read the inputs with datamill, which numbers every record, or drop the column `_id`",
    )  # fmt: skip
