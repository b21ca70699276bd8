"""From a type-checked tree to a polars expression, and its evaluation over an Arrow table."""

import operator as op
from collections.abc import Callable, Mapping

import polars as pl
import pyarrow as pa

from datamill.operators.expressions.syntax import (
    Binary,
    Call,
    Column,
    In,
    IsNull,
    Literal,
    Node,
    Unary,
    columns_of,
)
from datamill.operators.expressions.types import Kind, kind_of, type_of, unify
from datamill.operators.text.words import word_count

_POLARS = {Kind.TEXT: pl.String, Kind.INTEGER: pl.Int64, Kind.FRACTION: pl.Float64, Kind.BOOLEAN: pl.Boolean}
ARROW = {Kind.TEXT: pa.string(), Kind.INTEGER: pa.int64(), Kind.FRACTION: pa.float64(), Kind.BOOLEAN: pa.bool_()}
"""Arrow types of results."""


_RESULT = "result of the expression"


def evaluate(node: Node, table: pa.Table) -> tuple[pl.Series, Kind]:
    """Values of `node` for every row of `table` (at least one column), and their kind.

    Raises:
        DatamillError: as `types.type_of`, when the table does not have the columns or types the plan promised.
    """
    kinds = {field.name: kind_of(str(field.type)) for field in table.schema}
    kind = type_of(node, kinds)
    names = list(columns_of(node)) or table.column_names[:1]
    frame = pl.from_arrow(table.select(names))
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(_compile(node, kinds).alias(_RESULT)).get_column(_RESULT), kind


def _compile(node: Node, kinds: Mapping[str, Kind]) -> pl.Expr:  # noqa: PLR0911  one return per node class
    match node:
        case Literal(value=value):
            return pl.lit(value, dtype=_POLARS.get(type_of(node, kinds)))
        case Column(name=name):
            return _column(name, kinds[name])
        case Unary():
            return _unary(node, kinds)
        case Binary():
            return _binary(node, kinds)
        case IsNull(operand=operand, negated=negated):
            inner = _compile(operand, kinds)
            return inner.is_not_null() if negated else inner.is_null()
        case In():
            return _membership(node, kinds)
        case Call():
            return _call(node, kinds)
    raise TypeError(f"not a node of the expression language: {node!r}")


def _typed(node: Node, kinds: Mapping[str, Kind], kind: Kind) -> pl.Expr:
    """`node` as a value of `kind`; gives nulls a type and widens integers to fractions."""
    compiled = _compile(node, kinds)
    return compiled.cast(_POLARS[kind]) if kind in _POLARS else compiled


def _column(name: str, kind: Kind) -> pl.Expr:
    if kind is Kind.FRACTION:
        return pl.col(name).cast(pl.Float64).fill_nan(None)
    return pl.col(name).cast(_POLARS[kind]) if kind in _POLARS else pl.col(name)


def _unary(node: Unary, kinds: Mapping[str, Kind]) -> pl.Expr:
    if node.operator == "not":
        return _typed(node.operand, kinds, Kind.BOOLEAN).not_()
    return -_typed(node.operand, kinds, _number_kind(node.operand, kinds))


def _binary(node: Binary, kinds: Mapping[str, Kind]) -> pl.Expr:
    if node.operator in {"and", "or"}:
        kind = Kind.BOOLEAN
    else:
        found = unify([type_of(node.left, kinds), type_of(node.right, kinds)])
        kind = Kind.FRACTION if found in {None, Kind.NULL} else found or Kind.FRACTION
    return _BINARY[node.operator](_typed(node.left, kinds, kind), _typed(node.right, kinds, kind))


def _membership(node: In, kinds: Mapping[str, Kind]) -> pl.Expr:
    kind = unify([type_of(part, kinds) for part in (node.operand, *node.values)]) or Kind.TEXT
    listed = pl.Series([value.value for value in node.values], dtype=_POLARS[kind], strict=False)
    found = _typed(node.operand, kinds, kind).is_in(listed.implode())
    return found.not_() if node.negated else found


def _number_kind(node: Node, kinds: Mapping[str, Kind]) -> Kind:
    return Kind.INTEGER if type_of(node, kinds) is Kind.INTEGER else Kind.FRACTION


def _call(node: Call, kinds: Mapping[str, Kind]) -> pl.Expr:
    first = node.arguments[0]
    if node.function == "len":
        if type_of(first, kinds) is Kind.LIST:
            return _compile(first, kinds).list.len().cast(pl.Int64)
        return _typed(first, kinds, Kind.TEXT).str.len_chars().cast(pl.Int64)
    if node.function == "coalesce":
        kind = unify([type_of(argument, kinds) for argument in node.arguments]) or Kind.TEXT
        return pl.coalesce([_typed(argument, kinds, kind) for argument in node.arguments])
    if node.function in {"abs", "round"}:
        return _numeric(node, _typed(first, kinds, _number_kind(first, kinds)))
    return _TEXT[node.function](*(_typed(argument, kinds, Kind.TEXT) for argument in node.arguments))


def _numeric(node: Call, number: pl.Expr) -> pl.Expr:
    if node.function == "abs":
        return number.abs()
    digits = node.arguments[1].value if len(node.arguments) > 1 and isinstance(node.arguments[1], Literal) else 0
    return number.round(max(int(digits or 0), 0))


def _divide(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return left.cast(pl.Float64) / pl.when(right != 0).then(right)


def _modulo(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return left % pl.when(right != 0).then(right)


_BINARY: Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "and": op.and_,
    "or": op.or_,
    "+": op.add,
    "-": op.sub,
    "*": op.mul,
    "/": _divide,
    "%": _modulo,
    "==": op.eq,
    "!=": op.ne,
    "<": op.lt,
    "<=": op.le,
    ">": op.gt,
    ">=": op.ge,
}

_TEXT: Mapping[str, Callable[..., pl.Expr]] = {
    "lower": lambda text: text.str.to_lowercase(),
    "upper": lambda text: text.str.to_uppercase(),
    "trim": lambda text: text.str.strip_chars(),
    "word_count": lambda text: word_count(text).cast(pl.Int64),
    "contains": lambda text, part: text.str.contains(part, literal=True),
    "starts_with": lambda text, part: text.str.starts_with(part),
    "ends_with": lambda text, part: text.str.ends_with(part),
    "matches": lambda text, pattern: text.str.contains(pattern),
}
