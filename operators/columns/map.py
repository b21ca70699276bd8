r"""`columns.map`: one new column from an expression or a template over other columns.

    {column: length, expr: "len(question) + len(answer)"}
    {column: prompt, template: "Question: {question}\nAnswer:"}

The expression language is `operators.expressions`; a template holds column names between braces (`{{` and `}}` are
braces) and nothing else. Null in a template: `drop` leaves the row out, `keep` gives null, `error` stops. An
expression may give null by its own rules; `on_null` then applies to its result. One vectorised pass.
"""

from collections.abc import Sequence
from string import Formatter
from typing import Self

import polars as pl
import pyarrow as pa
from pydantic import Field, model_validator

from datamill.errors import DatamillError, ExitCode
from datamill.operators.declaration import ColumnType, Context, Effect, Need, OnNull, Params, Schema, operator
from datamill.operators.expressions import Kind, columns_of, evaluate, kinds_of, parse, type_of
from datamill.operators.expressions.compiler import ARROW
from datamill.operators.outcomes import then, with_column, without_nulls
from datamill.services.engines.protocol import Outcome
from datamill.services.records import SYSTEM_COLUMNS

_DTYPES = {Kind.TEXT: "string", Kind.INTEGER: "int64", Kind.FRACTION: "double", Kind.BOOLEAN: "bool"}


class MapParams(Params):
    """Parameters of `columns.map`: exactly one of `expr` and `template`."""

    column: str = Field(min_length=1, description="name of the new or replaced column")
    expr: str | None = Field(None, description="expression over columns, e.g. `len(text)` or `score * 100`")
    template: str | None = Field(None, description="text with column names between braces")
    on_null: OnNull = Field("keep", description="when the result is null: drop the row, keep the null, or stop")

    @model_validator(mode="after")
    def _valid(self) -> Self:
        if (self.expr is None) == (self.template is None):
            raise ValueError("give exactly one of `expr` and `template`")
        if self.column in SYSTEM_COLUMNS:
            raise ValueError(f"`{self.column}` is a system column")
        if self.template is not None:
            template_parts(self.template)
        if self.expr is not None:
            checked_expression(self.expr)
        return self


def checked_expression(source: str) -> str:
    """`source`, after a look at its syntax.

    Raises:
        ValueError: with code, message and character, for pydantic to report beside the parameter.
    """
    try:
        parse(source)
    except DatamillError as error:
        raise ValueError(str(error)) from error
    return source


def template_parts(template: str) -> list[tuple[str, str | None]]:
    """Pieces of a template: literal text, and the column that follows it (None at the end).

    Raises:
        ValueError: for format specifications, conversions, attributes, indices and empty names.
    """
    parts: list[tuple[str, str | None]] = []
    for text, name, spec, conversion in Formatter().parse(template):
        if name is not None and (not name or spec or conversion or set(name) & set(".[]{}")):
            raise ValueError(f"a template holds plain column names between braces, not `{{{name}}}`")
        parts.append((text, name))
    return parts


def _names(params: MapParams) -> Sequence[str]:
    if params.expr is not None:
        return columns_of(parse(params.expr))
    return tuple(dict.fromkeys(name for _, name in template_parts(params.template or "") if name is not None))


def _reads(params: MapParams) -> list[Need]:
    if params.expr is not None:
        return [Need(name, field="params.expr") for name in _names(params)]
    dtypes = ("string", "int64", "int32", "double", "float", "bool")
    return [Need(name, dtypes, nullable=params.on_null != "error", field="params.template") for name in _names(params)]


def _writes(params: MapParams, schema: Schema) -> Schema:
    if params.expr is None:
        nullable = params.on_null == "keep" and any(schema[n].nullable for n in _names(params) if n in schema)
        return {**schema, params.column: ColumnType("string", nullable, "text")}
    if not all(name in schema for name in columns_of(parse(params.expr))):
        return {**schema, params.column: ColumnType("string", nullable=True)}
    kind = type_of(parse(params.expr), kinds_of(schema))
    if kind not in _DTYPES:
        _refuse_kind(kind)
    semantic = {Kind.TEXT: "text", Kind.BOOLEAN: "label"}.get(kind, "number")
    return {**schema, params.column: ColumnType(_DTYPES[kind], params.on_null == "keep", semantic)}


def _refuse_kind(kind: Kind) -> None:
    raise DatamillError(
        "DM-OPA-013",
        f"columns.map cannot make a column of type {kind}",
        exit_code=ExitCode.INVALID,
        field="params.expr",
        expected="text, integer, fraction or boolean",
    )


@operator(
    "columns.map",
    "Makes a new column from an expression or a template over other columns.",
    effect=Effect.MAP,
    params=MapParams,
    reads=_reads,
    writes=_writes,
    keywords=(
        "new column", "compute column", "derive", "template", "join columns", "combine columns", "concatenate columns",
        "新列", "计算列", "拼接", "合并列", "模板", "nova coluna", "calcular coluna", "juntar colunas",
        "modelo de texto",
        "nueva columna", "calcular columna", "unir columnas", "plantilla",
    ),
    reasons=("null_*",),
)  # fmt: skip
def map_column(batch: pa.Table, params: MapParams, _ctx: Context) -> Outcome:
    """Evaluate, set the column, then apply `on_null` to the result."""
    if params.expr is not None:
        values, kind = evaluate(parse(params.expr), batch)
        if kind not in ARROW:
            _refuse_kind(kind)
        done = with_column(batch, params.column, values, ARROW[kind])
    else:
        done = with_column(batch, params.column, _fill(batch, params.template or ""), pa.string())
    return then(Outcome(done), lambda rows: without_nulls(rows, [params.column], params.on_null))


def _fill(batch: pa.Table, template: str) -> pl.Series:
    pieces: list[pl.Expr] = []
    for text, name in template_parts(template):
        pieces.append(pl.lit(text))
        if name is not None:
            pieces.append(pl.col(name).cast(pl.String))
    names = list(dict.fromkeys(n for _, n in template_parts(template) if n)) or batch.column_names[:1]
    frame = pl.from_arrow(batch.select(names))
    assert isinstance(frame, pl.DataFrame)
    filled = frame.with_columns(pl.concat_str(pieces or [pl.lit("")]).alias("filled template"))
    return filled.get_column("filled template")
