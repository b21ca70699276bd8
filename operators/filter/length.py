"""`filter.length`: keep texts within bounds on characters, words, tokens or turns.

* `chars`: Unicode code points. `words`: `text.words` (each character of a script without spaces is a word).
* `tokens`: of a local `tokenizer.json`, without special tokens. `turns`: exchanges of a conversation, counted by
  its user messages; the column is a list of messages or the same as JSON.

An empty text has length 0. Each column gets its length as a column (`output_chars`), so that a bound can be changed
and replayed. Characters and words are vectorised; tokens cost what the tokenizer costs (about 1-3 MB/s a core).
"""

from functools import partial
from typing import Literal, Self

import polars as pl
import pyarrow as pa
from pydantic import Field, model_validator

from datamill.operators.declaration import Context, Effect, Need, OnNull, Params, Schema, operator, text_need
from datamill.operators.outcomes import keep_within, text_column, then, with_column, without_nulls
from datamill.operators.parameters import COUNT, Columns, with_columns
from datamill.operators.text.words import word_count
from datamill.services.engines.protocol import Outcome

Unit = Literal["chars", "words", "tokens", "turns"]


class LengthParams(Params):
    """Parameters of `filter.length`: at least one of `min` and `max`."""

    columns: Columns = Field(("text",), description="columns to measure")
    unit: Unit = Field("chars", description="what is counted")
    min: int | None = Field(None, ge=0, description="smallest length kept, in units")
    max: int | None = Field(None, ge=0, description="largest length kept, in units")
    combine: Literal["each", "sum"] = Field(
        "each", description="several columns: every one has to be within the bounds, or their sum"
    )
    tokenizer: str | None = Field(None, description="tokenizer.json, or a folder with one; needed for tokens")
    on_null: OnNull = "drop"

    @model_validator(mode="after")
    def _valid(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("give `min`, `max` or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"`min` {self.min} is above `max` {self.max}: nothing would be kept")
        if self.unit == "tokens" and self.tokenizer is None:
            raise ValueError("unit tokens needs `tokenizer`, the path of a tokenizer.json")
        return self


def score_columns(params: LengthParams) -> list[str]:
    """Names of the columns the lengths are written to."""
    if params.combine == "sum" and len(params.columns) > 1:
        return [f"total_{params.unit}"]
    return [f"{column}_{params.unit}" for column in params.columns]


def _reads(params: LengthParams) -> list[Need]:
    if params.unit != "turns":
        return [text_need(column, params.on_null) for column in params.columns]
    dtypes = ("string", "json", "list*")
    return [Need(c, dtypes, nullable=params.on_null != "error", field="params.columns") for c in params.columns]


def _writes(params: LengthParams, schema: Schema) -> Schema:
    return with_columns(schema, **dict.fromkeys(score_columns(params), COUNT))


@operator(
    "filter.length",
    "Keeps texts within bounds on characters, words, tokens or turns.",
    effect=Effect.FILTER,
    params=LengthParams,
    reads=_reads,
    writes=_writes,
    files=lambda params: (params.tokenizer,) if params.tokenizer else (),
    keywords=(
        "length", "too short", "too long", "short", "long", "at least words", "min words", "max words",
        "minimum length", "characters", "tokens", "turns", "shorter than", "longer than", "empty", "empty output",
        "长度", "太短", "太长", "字数", "少于", "超过", "轮", "空的", "词数", "过短",
        "curto", "longo", "comprimento", "tamanho", "palavras", "caracteres", "vazio", "menos de", "mais de",
        "corto", "largo", "longitud", "palabras", "vacío", "más de",
    ),
    reasons=("too_short", "too_long", "null_*"),
)  # fmt: skip
def length(batch: pa.Table, params: LengthParams, ctx: Context) -> Outcome:
    """Measure, write the lengths, then keep what is within the bounds; the first column outside gives the fate."""
    return then(without_nulls(batch, params.columns, params.on_null), lambda rows: _bound(rows, params, ctx))


def _bound(rows: pa.Table, params: LengthParams, ctx: Context) -> Outcome:
    lengths = [measure(rows, column, params, ctx) for column in params.columns]
    names = score_columns(params)
    if len(names) < len(lengths):
        lengths = [pl.DataFrame(dict(enumerate_names(lengths))).sum_horizontal(ignore_nulls=False)]
    for name, values in zip(names, lengths, strict=True):
        rows = with_column(rows, name, values, pa.int64())
    outcome = Outcome(rows)
    for name in names:
        outcome = then(outcome, partial(_keep, name=name, params=params))
    return outcome


def enumerate_names(series: list[pl.Series]) -> list[tuple[str, pl.Series]]:
    """The series under distinct names."""
    return [(str(index), values) for index, values in enumerate(series)]


def _keep(rows: pa.Table, name: str, params: LengthParams) -> Outcome:
    values = pl.from_arrow(rows[name].combine_chunks())
    assert isinstance(values, pl.Series)
    return keep_within(rows, values, params.min, params.max, reasons=("too_short", "too_long"), detail=name)


def measure(rows: pa.Table, column: str, params: LengthParams, ctx: Context) -> pl.Series:
    """Length of every value of `column` in `params.unit`; null stays null."""
    if params.unit == "turns":
        from datamill.operators.filter.turns import turn_counts

        return turn_counts(rows[column])
    text = text_column(rows, column)
    if params.unit == "tokens":
        from datamill.operators.filter.tokens import token_counts

        return token_counts(text, str(ctx.project / (params.tokenizer or "")))
    expression = pl.col("text").str.len_chars() if params.unit == "chars" else word_count(pl.col("text"))
    return pl.DataFrame({"text": text}).select(expression.cast(pl.Int64)).to_series()
