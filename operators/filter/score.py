"""`filter.score`: keep rows whose number is within bounds. One vectorised comparison."""

from typing import Self

import polars as pl
import pyarrow as pa
from pydantic import Field, model_validator

from datamill.operators.declaration import Context, Effect, Need, OnNull, Params, operator
from datamill.operators.outcomes import keep_within, then, without_nulls
from datamill.services.engines.protocol import Outcome

NUMBERS = ("int*", "uint*", "double", "float*", "halffloat")


class ScoreParams(Params):
    """Parameters of `filter.score`: at least one of `min` and `max`."""

    column: str = Field(description="numeric column")
    min: float | None = Field(None, allow_inf_nan=False, description="smallest value kept")
    max: float | None = Field(None, allow_inf_nan=False, description="largest value kept")
    on_null: OnNull = "drop"

    @model_validator(mode="after")
    def _valid(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("give `min`, `max` or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"`min` {self.min} is above `max` {self.max}: nothing would be kept")
        return self


@operator(
    "filter.score",
    "Keeps rows whose number lies within bounds.",
    effect=Effect.FILTER,
    params=ScoreParams,
    reads=lambda p: [Need(p.column, dtypes=NUMBERS, nullable=p.on_null != "error", field="params.column")],
    keywords=(
        "score", "minimum score", "score above", "score below", "threshold", "rating", "at least points",
        "分数", "得分", "评分", "高于", "低于", "pontuação", "nota mínima", "acima de", "abaixo de",
        "puntuación", "nota mínima", "por encima de", "por debajo de",
    ),
    reasons=("below_min", "above_max", "null_*"),
)  # fmt: skip
def score(batch: pa.Table, params: ScoreParams, _ctx: Context) -> Outcome:
    """Compare; NaN counts as null and becomes null."""
    return then(_without_nan(batch, params), lambda rows: _within(rows, params))


def _numbers(rows: pa.Table, column: str) -> pl.Series:
    values = pl.from_arrow(rows[column].combine_chunks())
    assert isinstance(values, pl.Series)
    return values.fill_nan(None) if values.dtype.is_float() else values


def _without_nan(batch: pa.Table, params: ScoreParams) -> Outcome:
    """The null policy, with NaN turned into null."""
    index = batch.column_names.index(params.column)
    seen = batch.set_column(index, params.column, _numbers(batch, params.column).to_arrow())
    outcome = without_nulls(seen, [params.column], params.on_null)
    return Outcome(outcome.rows.cast(batch.schema), outcome.fates)


def _within(rows: pa.Table, params: ScoreParams) -> Outcome:
    values = _numbers(rows, params.column)
    return keep_within(rows, values, params.min, params.max, reasons=("below_min", "above_max"), detail=params.column)
