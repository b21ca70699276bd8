"""Near-duplicate decisions when the pairs are too many for one machine: every join is a shuffle, nothing is gathered.

Same decisions as the short way through the driver (`candidates` and `clusters`), by the same functions on groups:

1. components of the candidate pairs (`components.connected`);
2. texts and pairs meet by component and the pairs are held against the threshold (`candidates.verify_table`);
3. components of the verified pairs are the clusters; rows and pairs meet by cluster and each cluster chooses its
   representative (`clusters.cluster_decisions`);
4. rows and decisions meet by id.

Cost: all texts move once (step 2), 40 bytes a candidate pair a few times, ids once.
"""

from functools import partial
from typing import Final

import polars as pl
import pyarrow as pa

from datamill.operators.dedup.candidates import EDGE_SCHEMA, verify_table
from datamill.operators.dedup.clusters import RANK, ROW, cluster_decisions, decision_schema, rank_values
from datamill.operators.dedup.components import COMPONENT, NODE, connected
from datamill.services.engines.protocol import Dataset
from datamill.services.minhash.settings import SketchSettings
from datamill.services.records import ID, ORD

PAIR: Final = "pair"
DECIDED: Final = "decided"
PAIR_COLUMNS: Final = ("left", "right", "value")
TEXT_COLUMNS: Final = (ROW, "text")
MEMBER_COLUMNS: Final = (ROW, ID, ORD, RANK)


def distinct_pairs(raw: Dataset) -> Dataset:
    """Candidate pairs once each, `same` when any band found equal texts."""
    return raw.map_tables(_with_pair_key).shuffle(PAIR, _once).keep()


def verified_pairs(data: Dataset, column: str, pairs: Dataset, settings: SketchSettings, threshold: float) -> Dataset:
    """Duplicate pairs in `EDGE_SCHEMA`: equal texts with 1, others by exact Jaccard, or null when not verified."""
    equal = pairs.map_tables(partial(_edges, same=True, value=1.0))
    if settings.verify == "none":
        return equal.union(pairs.map_tables(partial(_edges, same=False, value=None))).keep()
    open_pairs = pairs.map_tables(partial(_edges, same=False, value=None))
    components = connected(open_pairs).keep()
    texts = attach(data.map_tables(partial(_texts, column=column), columns=[ID, column]), components)
    tagged = attach(open_pairs.map_tables(_keyed_by_left), components)
    check = partial(_verify, unit=settings.unit, ngram=settings.ngram, threshold=threshold)
    return equal.union(texts.union(tagged).shuffle(COMPONENT, check)).keep()


def decided_rows(
    data: Dataset, edges: Dataset, keep: str, column: str, best: str | None, threshold: float, action: str, reason: str
) -> Dataset:
    """Decisions about the rows that have a duplicate, in `clusters.decision_schema`."""
    clusters = connected(edges).keep()
    columns = list(dict.fromkeys([ID, ORD, *([best] if best else []), *([column] if keep == "longest" else [])]))
    members = attach(data.map_tables(partial(_members, keep=keep, column=column), columns=columns), clusters)
    tagged = attach(edges.map_tables(_keyed_by_left), clusters)
    decide = partial(_decide, threshold=threshold, action=action, reason=reason)
    return members.union(tagged).shuffle(COMPONENT, decide)


def attach(keyed: Dataset, components: Dataset) -> Dataset:
    """Rows of `keyed` whose `row` has a component, with it; others are left out."""
    named = components.map_tables(_as_rows)
    return keyed.union(named).shuffle(ROW, _attached)


def as_decided(table: pa.Table) -> pa.Table:
    """Decisions marked as such, to be told from the same rows seen alone."""
    return table.append_column(DECIDED, pa.repeat(pa.scalar(value=True), table.num_rows))


def one_decision(table: pa.Table) -> pa.Table:
    """Of a row seen alone and in a cluster the decision of the cluster stands."""
    frame = pl.DataFrame(table).sort(ID, pl.col(DECIDED).is_null(), maintain_order=True)
    schema = decision_schema()
    return frame.unique(ID, keep="first", maintain_order=True).select(schema.names).to_arrow().cast(schema)


def _with_pair_key(table: pa.Table) -> pa.Table:
    frame = pl.DataFrame(table)
    return frame.with_columns(frame.select("left", "right").hash_rows(seed=2).alias(PAIR)).to_arrow()


def _once(table: pa.Table) -> pa.Table:
    frame = pl.DataFrame(table)
    return frame.group_by("left", "right").agg(pl.col("same").any()).sort("left", "right").to_arrow()


def _edges(table: pa.Table, *, same: bool, value: float | None) -> pa.Table:
    frame = pl.DataFrame(table).filter(pl.col("same") == same)
    return frame.select("left", "right", value=pl.lit(value, pl.Float64)).to_arrow().cast(EDGE_SCHEMA)


def _keyed_by_left(table: pa.Table) -> pa.Table:
    return pl.DataFrame(table).select(pl.col("left").alias(ROW), *PAIR_COLUMNS).to_arrow()


def _as_rows(table: pa.Table) -> pa.Table:
    return pl.DataFrame(table).select(pl.col(NODE).alias(ROW), COMPONENT).to_arrow()


def _texts(table: pa.Table, *, column: str) -> pa.Table:
    from datamill.services.minhash.sketch import row_hashes

    return pa.table({ROW: pa.array(row_hashes(table[ID]), pa.uint64()), "text": table[column].cast(pa.large_string())})


def _members(table: pa.Table, *, keep: str, column: str) -> pa.Table:
    from datamill.services.minhash.sketch import row_hashes

    rows = pa.array(row_hashes(table[ID]), pa.uint64())
    rank = rank_values(table, keep, (column,))
    return pa.table({ROW: rows, ID: table[ID].cast(pa.string()), ORD: table[ORD], RANK: rank})


def _attached(table: pa.Table) -> pa.Table:
    """Give every row the component that a row of the same key names."""
    frame = pl.DataFrame(table)
    own = [name for name in frame.columns if name != COMPONENT]
    named = frame.filter(pl.col(COMPONENT).is_not_null()).select(ROW, COMPONENT)
    rows = frame.filter(pl.col(COMPONENT).is_null()).select(own)
    made = rows.join(named, on=ROW, how="inner").select(*own, COMPONENT).to_arrow()
    return made.cast(pa.schema([table.schema.field(name) for name in made.column_names]))


def _verify(table: pa.Table, *, unit: str, ngram: int, threshold: float) -> pa.Table:
    """Texts and pairs of whole components, told apart by what they have."""
    if not table.num_rows:
        return EDGE_SCHEMA.empty_table()
    frame = pl.DataFrame(table)
    texts = frame.filter(pl.col("left").is_null()).select(COMPONENT, ROW, "text").sort(COMPONENT, ROW)
    pairs = frame.filter(pl.col("left").is_not_null()).select("left", "right", COMPONENT)
    tagged = pairs.sort(COMPONENT, "left", "right").to_arrow()
    return verify_table(texts.to_arrow(), pairs=tagged, unit=unit, ngram=ngram, threshold=threshold)


def _decide(table: pa.Table, *, threshold: float, action: str, reason: str) -> pa.Table:
    """Members and pairs of whole clusters."""
    if not table.num_rows:
        return decision_schema().empty_table()
    frame = pl.DataFrame(table)
    members = frame.filter(pl.col("left").is_null()).select(*MEMBER_COLUMNS).to_arrow()
    edges = frame.filter(pl.col("left").is_not_null()).select(*PAIR_COLUMNS)
    return cluster_decisions(members, edges, threshold=threshold, action=action, reason=reason)
