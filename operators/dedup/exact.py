"""`dedup.exact`: rows whose chosen columns read the same, after a normalisation that can be turned off.

Promises: the same rows leave for any partitioning and order; exactly one row of each group stays; rows are told
apart by a 128-bit hash of the values with their lengths, so that `("a", "bc")` and `("ab", "c")` differ.

Normalisation (`normalise: true`): NFC, runs of white space become one space, none at either end; `casefold` folds
case on top. Off, bytes are compared.

Cost: one pass; 32 + 32 + 8 bytes a row travel in the shuffle; only rows with a duplicate reach the driver.

Source: xxHash3, 128 bits (Y. Collet); Unicode Standard Annex #15.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pydantic import Field

from datamill.errors import DatamillError
from datamill.operators.declaration import Context, Effect, Need, OnNull, Params, operator
from datamill.operators.dedup.clusters import (
    KEEP_PATTERN,
    RANK,
    best_column,
    best_first,
    decision_schema,
    rank_values,
    with_decisions,
)
from datamill.operators.parameters import Columns
from datamill.services.engines.protocol import Dataset
from datamill.services.records import ID, ORD, Fate

REASON: Final = "exact_duplicate"
KEY: Final = "key"


class ExactParams(Params):
    """Parameters of `dedup.exact`."""

    columns: Columns = Field(("text",), description="columns that must all agree")
    normalise: bool = Field(
        default=True, description="compare after NFC, with white space collapsed and trimmed; off compares bytes"
    )
    casefold: bool = Field(default=False, description="also ignore case; needs normalise")
    keep: str = Field(
        "first", pattern=KEEP_PATTERN, description="row that stays: first, longest, or best:<number column>"
    )
    on_null: OnNull = Field("keep", description="rows with a null in a column: kept apart, dropped, or refused")


def normalised(text: str, *, casefold: bool) -> str:
    """NFC, white space collapsed and trimmed, optionally case-folded (and NFC again, which folding may undo)."""
    composed = " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())
    return unicodedata.normalize("NFC", composed.casefold()) if casefold else composed


def _reads(params: ExactParams) -> Sequence[Need]:
    needs = [Need(name, nullable=params.on_null != "error", field="params.columns") for name in params.columns]
    best = best_column(params.keep)
    return [*needs, Need(best, dtypes=("int*", "double", "float*"), field="params.keep")] if best else needs


def _check(params: ExactParams) -> Sequence[tuple[str, str, str]]:
    if params.casefold and not params.normalise:
        return [("error", "casefold", "casefold has no effect without normalise; set normalise: true")]
    return ()


@operator(
    "dedup.exact",
    "Remove rows that repeat an earlier one exactly, after normalising white space.",
    effect=Effect.GLOBAL,
    params=ExactParams,
    reads=_reads,
    check=_check,
    reference="xxh3-128",
    keywords=(
        "exact duplicates", "identical rows", "deduplicate", "unique", "distinct", "repeated rows",
        "完全去重", "重复", "去重", "duplicados exactos", "doublons", "Duplikate",
    ),
    reasons=(REASON, "null_<column>"),
)  # fmt: skip
def run(datasets: Sequence[Dataset], params: ExactParams, _ctx: Context) -> Dataset:
    """Decide for every row whether it repeats another.

    Returns:
        `_id` and the fate columns for every row; a duplicate is `merged` into the row that stays, with value and
        threshold 1.

    Raises:
        DatamillError: `DM-DEDUP-007` a null under `on_null: error`.
    """
    data = datasets[0]
    best = best_column(params.keep)
    columns = list(dict.fromkeys([ID, ORD, *params.columns, *([best] if best else [])]))
    keyed = data.map_tables(partial(key_table, params=params), columns=columns)
    repeated = keyed.shuffle(KEY, repeated_rows).collect()
    decide = partial(decision_table, decided=repeated, params=params)
    return data.map_tables(decide, columns=[ID, *(c for c in params.columns if c != ID)])


def key_table(table: pa.Table, *, params: ExactParams) -> pa.Table:
    """`key` (32 hex digits), `_id`, `_ord` and `rank` of the rows of a partition without a null."""
    complete = table.filter(pc.invert(_any_null(table, params.columns)))
    texts = [_as_strings(complete[name]) for name in params.columns]
    return pa.table(
        {
            KEY: pa.array(_keys(zip(*texts, strict=True), params), pa.string()),
            ID: complete[ID],
            ORD: complete[ORD],
            RANK: _rank(complete, params, texts),
        }
    )


def repeated_rows(table: pa.Table) -> pa.Table:
    """Decisions about the rows of every group of two and more that do not stay; `table` holds whole groups."""
    frame = pl.DataFrame(table)
    groups = best_first(frame.filter(pl.col(KEY).is_duplicated()))
    leaders = groups.group_by(KEY, maintain_order=True).agg(pl.col(ID).first().alias("into"))
    gone = groups.join(leaders, on=KEY).filter(pl.col(ID) != pl.col("into")).sort(ORD, ID)
    chosen = gone.select(
        ID, fate=pl.lit(str(Fate.MERGED)), reason=pl.lit(REASON), value=pl.lit(1.0), threshold=pl.lit(1.0),
        into="into", detail=pl.lit(None, pl.String),
    )  # fmt: skip
    return chosen.to_arrow().cast(decision_schema(clusters=False))


def decision_table(table: pa.Table, *, decided: pa.Table, params: ExactParams) -> pa.Table:
    """Decisions about all rows of one partition."""
    rows = pl.DataFrame({ID: pl.from_arrow(table[ID])})
    if params.on_null != "keep":
        first_null = pl.Series("reason", [None] * table.num_rows, pl.String)
        for name in reversed(params.columns):
            missing = pl.Series(table[name].is_null().to_pylist(), dtype=pl.Boolean)
            first_null = pl.select(pl.when(missing).then(pl.lit(f"null_{name}")).otherwise(first_null)).to_series()
        if params.on_null == "error" and first_null.null_count() < len(first_null):
            raise DatamillError(
                "DM-DEDUP-007", f"column `{first_null.drop_nulls()[0].removeprefix('null_')}` is null in a row",
                field="params.on_null", fix="set on_null: keep or drop",
            )  # fmt: skip
        fate = pl.when(first_null.is_not_null()).then(pl.lit(str(Fate.DROPPED)))
        rows = rows.with_columns(fate=fate, reason=first_null)
    return with_decisions(rows, decided, clusters=False)


def _any_null(table: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    null = table[columns[0]].is_null()
    for name in columns[1:]:
        null = pc.or_(null, table[name].is_null())
    return null


def _as_strings(column: pa.ChunkedArray) -> list[str]:
    kind = column.type
    scalar = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    values = (column.cast(pa.string()) if scalar else column).to_pylist()
    return [value if isinstance(value, str) else repr(value) for value in values]


def _keys(rows: Iterable[tuple[str, ...]], params: ExactParams) -> list[str]:
    keys = []
    for values in rows:
        hasher = xxhash.xxh3_128()
        for value in values:
            text = normalised(value, casefold=params.casefold) if params.normalise else value
            data = text.encode("utf-8", "surrogatepass")
            hasher.update(len(data).to_bytes(8, "little") + data)
        keys.append(hasher.hexdigest())
    return keys


def _rank(table: pa.Table, params: ExactParams, texts: Sequence[Sequence[str]]) -> pa.Array | pa.ChunkedArray:
    if params.keep != "longest":
        return rank_values(table, params.keep, params.columns)
    return pa.array([float(sum(map(len, values))) for values in zip(*texts, strict=True)], pa.float64())
