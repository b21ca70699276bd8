"""`filter.expr`: keep the rows for which an expression is true.

The language is `operators.expressions`; it is type-checked against the plan's columns before a row is read.
A row for which the expression is null (three-valued logic) leaves with reason `null_condition` unless `on_null`
says otherwise. One vectorised pass.
"""

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from datamill.errors import DatamillError, ExitCode
from datamill.operators.columns.map import checked_expression
from datamill.operators.declaration import Context, Effect, Need, OnNull, Params, Schema, operator
from datamill.operators.expressions import Kind, columns_of, evaluate, kinds_of, parse, type_of
from datamill.operators.outcomes import keep_where, then
from datamill.services.engines.protocol import Outcome


class ExprParams(Params):
    """Parameters of `filter.expr`."""

    expr: str = Field(min_length=1, description='condition over columns, e.g. `score >= 0.5 and lang in ["en", "zh"]`')
    on_null: OnNull = Field("drop", description="rows for which the condition is null")

    _syntax = field_validator("expr")(checked_expression)


def _reads(params: ExprParams) -> list[Need]:
    return [Need(name, field="params.expr") for name in columns_of(parse(params.expr))]


def _writes(params: ExprParams, schema: Schema) -> Schema:
    _need_boolean(type_of(parse(params.expr), kinds_of(schema)))
    return schema


def _need_boolean(kind: Kind) -> None:
    if kind not in {Kind.BOOLEAN, Kind.NULL}:
        raise DatamillError(
            "DM-OPA-013",
            f"the condition is of type {kind}",
            exit_code=ExitCode.INVALID,
            field="params.expr",
            expected="a comparison, such as `score >= 0.5`",
        )


@operator(
    "filter.expr",
    "Keeps the rows for which a typed expression over columns is true.",
    effect=Effect.FILTER,
    params=ExprParams,
    reads=_reads,
    writes=_writes,
    keywords=(
        "where", "condition", "filter rows", "keep rows where", "only rows", "equals", "greater than",
        "less than", "if",
        "条件", "筛选", "只保留", "满足", "大于", "小于", "等于", "condição", "filtrar linhas", "onde", "maior que",
        "condición", "filtrar filas", "donde", "mayor que",
    ),
    reasons=("condition_false", "null_condition"),
)  # fmt: skip
def expression_filter(batch: pa.Table, params: ExprParams, _ctx: Context) -> Outcome:
    """Evaluate once, then split true, false and null."""
    result, kind = evaluate(parse(params.expr), batch)
    _need_boolean(kind)
    mask = result.to_arrow().cast(pa.bool_())
    if params.on_null == "error" and mask.null_count:
        raise DatamillError(
            "DM-OPA-001",
            f"the condition `{params.expr}` is null for {mask.null_count} rows of a batch",
            field="params.on_null",
            fix="test with `is not null`, or set `on_null: drop` or `on_null: keep`",
        )
    known = pc.is_valid(mask) if params.on_null == "drop" else pa.repeat(pa.scalar(value=True), batch.num_rows)
    nulls = keep_where(batch, known, reason="null_condition", detail=params.expr)
    return then(nulls, lambda rows: keep_where(rows, mask.filter(known), reason="condition_false", detail=params.expr))
