"""`columns.cast`: change the types of columns; a value that does not fit is never guessed at.

Text becomes a number only when the whole text is one (`007` is 7, `7 kg` is not), a fraction becomes an integer only
when it has no fractional part, `true/false/yes/no/1/0` become booleans. What cannot be cast sends the row to
quarantine with the value in `detail`, or becomes null, as `on_fail` says. Null stays null.
"""

from functools import partial
from typing import Literal

import polars as pl
import pyarrow as pa
from pydantic import Field

from datamill.operators.declaration import ColumnType, Context, Effect, Need, Params, Schema, operator
from datamill.operators.outcomes import keep_where, then, with_column
from datamill.services.engines.protocol import Outcome
from datamill.services.records import Fate

TypeName = Literal["string", "int", "int64", "float", "double", "bool"]
_ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int64(),
    "int64": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
}
_NAMES = {pa.string(): "string", pa.int64(): "int64", pa.float64(): "double", pa.bool_(): "bool"}
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
DETAIL_CHARS = 200


class CastParams(Params):
    """Parameters of `columns.cast`."""

    types: dict[str, TypeName] = Field(min_length=1, description="column to type: string, int, float or bool")
    on_fail: Literal["quarantine", "null"] = Field(
        "quarantine", description="what happens to a row with a value that cannot be cast"
    )


_CASTABLE = (
    "string",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "float",
    "double",
    "bool",
    "json",
)


def _reads(params: CastParams) -> list[Need]:
    return [Need(column, dtypes=_CASTABLE, field=f"params.types.{column}") for column in params.types]


def _writes(params: CastParams, schema: Schema) -> Schema:
    cast_to = {}
    for column, name in params.types.items():
        before = schema.get(column, ColumnType("string"))
        dtype = _NAMES[_ARROW[name]]
        semantic = (
            "number" if dtype in {"int64", "double"} else before.semantic if before.semantic != "number" else "any"
        )
        cast_to[column] = ColumnType(dtype, before.nullable or params.on_fail == "null", semantic)
    return {**schema, **cast_to}


@operator(
    "columns.cast",
    "Changes column types; values that do not fit are quarantined.",
    effect=Effect.FILTER,
    params=CastParams,
    reads=_reads,
    writes=_writes,
    keywords=(
        "cast", "convert type", "to number", "to integer", "to string", "as float", "类型转换", "转换类型", "转成数字",
        "converter tipo", "para número", "convertir tipo", "a número", "tipo de columna",
    ),
    reasons=("cast_failed",),
)  # fmt: skip
def cast(batch: pa.Table, params: CastParams, _ctx: Context) -> Outcome:
    """Cast column by column; the first failing column gives the fate."""
    outcome = Outcome(batch)
    for column, name in params.types.items():
        outcome = then(outcome, partial(_cast_column, column=column, name=name, params=params))
    return outcome


def _cast_column(rows: pa.Table, column: str, name: TypeName, params: CastParams) -> Outcome:
    before = pl.from_arrow(rows[column].combine_chunks())
    assert isinstance(before, pl.Series)
    after = cast_series(before, _ARROW[name])
    failed = before.is_not_null() & after.is_null()
    done = with_column(rows, column, after, _ARROW[name])
    if params.on_fail == "null":
        return Outcome(done)
    shown = before.cast(pl.String, strict=False).str.slice(0, DETAIL_CHARS)
    detail = pl.select(pl.format(f"{column} = {{}}, not a {_NAMES[_ARROW[name]]}", shown)).to_series()
    return keep_where(done, ~failed, reason="cast_failed", detail=detail, fate=Fate.QUARANTINED)


def cast_series(values: pl.Series, dtype: pa.DataType) -> pl.Series:
    """Values as `dtype`, null where a value has no exact equal of that type."""
    if dtype == pa.string():
        return values.cast(pl.String)
    if dtype == pa.bool_():
        return _to_bool(values)
    text = values.dtype == pl.String
    source = values.str.strip_chars() if text else values
    if dtype == pa.float64():
        number = source.cast(pl.Float64, strict=False)
        return pl.select(pl.when(number.is_finite()).then(number)).to_series()
    whole = source.cast(pl.Int64, strict=False)
    if values.dtype.is_integer() or values.dtype == pl.Boolean:
        return whole
    number = source.cast(pl.Float64, strict=False)
    exact = (number == number.round(0)) & (number.abs() < 2.0**53)
    return pl.select(
        pl.coalesce(whole if text else None, pl.when(exact).then(number).cast(pl.Int64, strict=False))
    ).to_series()


def _to_bool(values: pl.Series) -> pl.Series:
    if values.dtype == pl.Boolean:
        return values
    text = values.cast(pl.String) if values.dtype == pl.String or values.dtype.is_integer() else None
    if text is None:
        whole = values.cast(pl.Int64, strict=False)
        text = pl.select(pl.when(whole == values).then(whole)).to_series().cast(pl.String)
    return text.str.strip_chars().str.to_lowercase().replace_strict(_WORDS, default=None, return_dtype=pl.Boolean)
