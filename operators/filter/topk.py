"""`filter.topk`: keep the rows with the highest (or lowest) numbers, in all or per group.

Ties go to the earlier row in the order of the input (`_ord`), so the result does not depend on partitions.
Cost: two passes over the score, grouping and system columns; about 20 bytes a row on the driver.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, Self

import polars as pl
import pyarrow as pa
from pydantic import Field, model_validator

from datamill.errors import DatamillError
from datamill.operators.declaration import Context, Effect, Need, OnNull, Params, operator
from datamill.operators.filter.score import NUMBERS
from datamill.operators.outcomes import NULL_REASON, decisions
from datamill.operators.parameters import Columns
from datamill.operators.sample.random import rows_wanted
from datamill.operators.sample.strata import group_needs, labels
from datamill.services.engines.protocol import Dataset
from datamill.services.records import ID, ORD, Fate

Cut = tuple[float, int]
"""Score and `_ord` of the last row kept."""


class TopKParams(Params):
    """Parameters of `filter.topk`: exactly one of `n` and `fraction`."""

    column: str = Field(description="numeric column to rank by")
    n: int | None = Field(None, ge=0, description="rows to keep, of each group when `by` is given")
    fraction: float | None = Field(None, ge=0, le=1, description="share of rows to keep; 0.8 drops the worst 20 %")
    order: Literal["highest", "lowest"] = Field("highest", description="which end is kept")
    by: Columns | None = Field(None, description="columns whose values make groups with a quota each")
    on_null: OnNull = Field("drop", description="rows without a number; they take no place in the quota")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.n is None) == (self.fraction is None):
            raise ValueError("give exactly one of `n` and `fraction`")
        return self


def _reads(params: TopKParams) -> list[Need]:
    need = Need(params.column, dtypes=NUMBERS, nullable=params.on_null != "error", field="params.column")
    return [need, *group_needs(params.by or (), "params.by")]


@operator(
    "filter.topk",
    "Keeps the rows with the highest or lowest numbers, in all or per group.",
    effect=Effect.GLOBAL,
    params=TopKParams,
    reads=_reads,
    keywords=(
        "top", "best", "worst", "highest", "lowest", "top percent", "bottom percent", "quantile", "best rows", "top k",
        "最好的", "最高", "最低", "前", "最差", "melhores", "piores", "mais altos", "mejores", "peores", "más altos",
    ),
    reasons=("outside_quota", "null_*"),
)  # fmt: skip
def topk(datasets: Sequence[Dataset], params: TopKParams, _ctx: Context) -> Dataset:
    """Find the last row kept of each group, then decide every row against its group's."""
    columns = list(dict.fromkeys([ID, ORD, params.column, *(params.by or ())]))
    ranked = pl.from_arrow(datasets[0].map_tables(partial(_ranked, params=params), columns=columns).collect())
    assert isinstance(ranked, pl.DataFrame)
    if params.on_null == "error" and ranked["score"].null_count():
        raise DatamillError(
            "DM-OPA-001",
            f"column `{params.column}` is null in {ranked['score'].null_count()} rows",
            field="params.on_null",
            fix="set `on_null: drop` or `on_null: keep`",
        )
    cuts = {}
    for (group,), part in ranked.drop_nulls("score").partition_by("group", as_dict=True).items():
        cuts[str(group)] = _cut(part, rows_wanted(len(part), params.n, params.fraction))
    return datasets[0].map_tables(partial(_decide, params=params, cuts=cuts), columns=columns)


def _ranked(table: pa.Table, params: TopKParams) -> pa.Table:
    """Group, score with the kept end first, and order."""
    scores = pl.Series(pl.from_arrow(table[params.column]), dtype=pl.Float64).fill_nan(None)
    sign = -1.0 if params.order == "highest" else 1.0
    group = labels(table, params.by or ()).to_arrow().cast(pa.string())
    return pa.table({"group": group, "score": (scores * sign).to_arrow(), "order": table[ORD]})


def _cut(part: pl.DataFrame, count: int) -> Cut | None:
    if count <= 0:
        return None
    last = part.sort("score", "order").row(min(count, len(part)) - 1, named=True)
    return float(last["score"]), int(last["order"])


def _decide(table: pa.Table, params: TopKParams, cuts: Mapping[str, Cut | None]) -> pa.Table:
    ranked = pl.from_arrow(_ranked(table, params))
    assert isinstance(ranked, pl.DataFrame)
    bounds = {group: cut for group, cut in cuts.items() if cut is not None}
    frame = ranked.with_columns(
        cut=pl.col("group").replace_strict({g: c[0] for g, c in bounds.items()}, default=None, return_dtype=pl.Float64),
        last=pl.col("group").replace_strict({g: c[1] for g, c in bounds.items()}, default=None, return_dtype=pl.Int64),
    )
    score, cut = pl.col("score"), pl.col("cut")
    inside = (score < cut) | ((score == cut) & (pl.col("order") <= pl.col("last")))
    dropped = score.is_null() & (params.on_null == "drop")
    outside = score.is_not_null() & ~inside.fill_null(value=False)
    sign = -1.0 if params.order == "highest" else 1.0
    shown = frame.select(
        fate=pl.when(dropped).then(pl.lit(Fate.DROPPED.value)).when(outside).then(pl.lit(Fate.NOT_SELECTED.value)),
        reason=pl.when(dropped).then(pl.lit(NULL_REASON + params.column)).when(outside).then(pl.lit("outside_quota")),
        value=pl.when(outside).then(score * sign),
        threshold=pl.when(outside).then(cut * sign),
    )
    columns = {name: shown[name] for name in shown.columns}
    return decisions(table[ID], **columns)
