"""Type checking of expressions against the columns of a plan, before any row is read."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from datamill.errors import nearest
from datamill.operators.declaration import Schema
from datamill.operators.expressions.syntax import Binary, Call, Column, In, IsNull, Literal, Node, Unary, Value, fail


class Kind(StrEnum):
    """Types of values in the language; `OTHER` (mixed json, structs, dates) can only be tested for null."""

    TEXT = "text"
    INTEGER = "integer"
    FRACTION = "fraction"
    BOOLEAN = "boolean"
    LIST = "list"
    OTHER = "other"
    NULL = "null"


NUMBERS = frozenset({Kind.INTEGER, Kind.FRACTION, Kind.NULL})
_TEXTS = frozenset({Kind.TEXT, Kind.NULL})
_BOOLEANS = frozenset({Kind.BOOLEAN, Kind.NULL})
_SIZED = frozenset({Kind.TEXT, Kind.LIST, Kind.NULL})
_DTYPES = (
    (re.compile(r"(large_)?string|(large_)?utf8|string_view"), Kind.TEXT),
    (re.compile(r"u?int\d+"), Kind.INTEGER),
    (re.compile(r"double|float|halffloat|float\d+"), Kind.FRACTION),
    (re.compile(r"bool(ean)?"), Kind.BOOLEAN),
    (re.compile(r"(large_|fixed_size_)?list.*"), Kind.LIST),
    (re.compile(r"null"), Kind.NULL),
)


def kind_of(dtype: str) -> Kind:
    """The kind of an Arrow type name as it stands in a plan schema."""
    return next((kind for pattern, kind in _DTYPES if pattern.fullmatch(dtype)), Kind.OTHER)


def kinds_of(schema: Schema) -> Mapping[str, Kind]:
    """Kinds of all columns of a plan schema."""
    return {name: kind_of(column.dtype) for name, column in schema.items()}


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments a function takes and what it gives.

    Attributes:
        arguments: allowed kinds of each argument.
        result: kind of the result, or a function of the kinds of the arguments.
        optional: how many arguments at the end may be left out.
        constant: index of an argument that has to be a literal.
        variadic: whether the last argument may be repeated.
    """

    arguments: tuple[frozenset[Kind], ...]
    result: Kind | Callable[[Sequence[Kind]], Kind]
    optional: int = 0
    constant: int | None = None
    variadic: bool = False


def unify(kinds: Sequence[Kind]) -> Kind | None:
    """The one kind that holds values of all `kinds`, or None when there is none."""
    known = set(kinds) - {Kind.NULL}
    if not known:
        return Kind.NULL
    if known == {Kind.INTEGER, Kind.FRACTION}:
        return Kind.FRACTION
    return known.pop() if len(known) == 1 else None


_ANY = frozenset(Kind) - {Kind.OTHER, Kind.LIST}
_PAIR = (_TEXTS, _TEXTS)
FUNCTIONS: Mapping[str, Signature] = {
    "len": Signature((_SIZED,), Kind.INTEGER),
    "word_count": Signature((_TEXTS,), Kind.INTEGER),
    "lower": Signature((_TEXTS,), Kind.TEXT),
    "upper": Signature((_TEXTS,), Kind.TEXT),
    "trim": Signature((_TEXTS,), Kind.TEXT),
    "contains": Signature(_PAIR, Kind.BOOLEAN),
    "starts_with": Signature(_PAIR, Kind.BOOLEAN),
    "ends_with": Signature(_PAIR, Kind.BOOLEAN),
    "matches": Signature(_PAIR, Kind.BOOLEAN, constant=1),
    "abs": Signature((NUMBERS,), lambda kinds: kinds[0]),
    "round": Signature((NUMBERS, frozenset({Kind.INTEGER})), lambda kinds: kinds[0], optional=1, constant=1),
    "coalesce": Signature((_ANY, _ANY), lambda kinds: unify(kinds) or Kind.OTHER, variadic=True),
}
"""`len` counts code points or list items, `word_count` counts as `text.words`, `matches` searches anywhere."""


def type_of(node: Node, columns: Mapping[str, Kind]) -> Kind:  # noqa: PLR0911  one return per node class
    """The kind of `node` over columns of the given kinds.

    Raises:
        DatamillError: `DM-OPA-011` unknown column, `DM-OPA-012` unknown function, `DM-OPA-013` wrong type,
            `DM-OPA-014` a pattern that is not RE2-safe; each with the character it is at.
    """
    match node:
        case Literal(value=value):
            return _literal_kind(value)
        case Column(name=name):
            return _column_kind(name, columns, node.position)
        case Unary():
            return _unary_kind(node, type_of(node.operand, columns))
        case Binary():
            return _binary_kind(node, type_of(node.left, columns), type_of(node.right, columns))
        case IsNull(operand=operand):
            type_of(operand, columns)
            return Kind.BOOLEAN
        case In():
            return _membership_kind(node, type_of(node.operand, columns))
        case Call():
            return _call_kind(node, [type_of(argument, columns) for argument in node.arguments])
    raise TypeError(f"not a node of the expression language: {node!r}")


def _literal_kind(value: Value) -> Kind:
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.INTEGER
        case float():
            return Kind.FRACTION
    return Kind.TEXT


def _column_kind(name: str, columns: Mapping[str, Kind], position: int) -> Kind:
    if name not in columns:
        fail("DM-OPA-011", f"there is no column `{name}`", position, nearest=nearest(name, columns))
    return columns[name]


def _need(kind: Kind, allowed: frozenset[Kind], what: str, position: int) -> None:
    if kind not in allowed:
        wanted = " or ".join(sorted(str(item) for item in allowed - {Kind.NULL}))
        fail("DM-OPA-013", f"{what} does not take a value of type {kind}", position, expected=wanted)


def _unary_kind(node: Unary, kind: Kind) -> Kind:
    _need(kind, _BOOLEANS if node.operator == "not" else NUMBERS, f"`{node.operator}`", node.position)
    return Kind.BOOLEAN if node.operator == "not" else kind


def _binary_kind(node: Binary, left: Kind, right: Kind) -> Kind:
    name, position = f"`{node.operator}`", node.position
    if node.operator in {"and", "or"}:
        _need(left, _BOOLEANS, name, position)
        _need(right, _BOOLEANS, name, position)
        return Kind.BOOLEAN
    if node.operator in {"+", "-", "*", "/", "%"}:
        return _arithmetic_kind(node, left, right)
    if Kind.NULL in {_constant_null(node.left), _constant_null(node.right)}:
        fail("DM-OPA-013", f"{name} with null is never true", position, fix="write `is null` or `is not null`")
    ordered = _ANY if node.operator in {"==", "!="} else _ANY - {Kind.BOOLEAN}
    _need(left, ordered, name, position)
    _need(right, ordered, name, position)
    if unify([left, right]) is None:
        fail("DM-OPA-013", f"{name} compares {left} with {right}", position, expected="two values of one type")
    return Kind.BOOLEAN


def _constant_null(node: Node) -> Kind | None:
    return Kind.NULL if isinstance(node, Literal) and node.value is None else None


def _arithmetic_kind(node: Binary, left: Kind, right: Kind) -> Kind:
    if node.operator == "+" and Kind.TEXT in {left, right}:
        _need(left, _TEXTS, "`+` beside a text", node.position)
        _need(right, _TEXTS, "`+` beside a text", node.position)
        return Kind.TEXT
    _need(left, NUMBERS, f"`{node.operator}`", node.position)
    _need(right, NUMBERS, f"`{node.operator}`", node.position)
    return Kind.FRACTION if node.operator == "/" else unify([left, right]) or Kind.FRACTION


def _membership_kind(node: In, kind: Kind) -> Kind:
    _need(kind, _ANY, "`in`", node.position)
    for value in node.values:
        other = _literal_kind(value.value)
        if other is Kind.NULL or unify([kind, other]) is None:
            fail("DM-OPA-013", f"a list for a value of type {kind} holds {other}", value.position, expected=str(kind))
    return Kind.BOOLEAN


def _call_kind(node: Call, kinds: Sequence[Kind]) -> Kind:
    name, position = node.function, node.position
    if name not in FUNCTIONS:
        fail("DM-OPA-012", f"there is no function `{name}`", position, nearest=nearest(name, FUNCTIONS),
             expected=", ".join(FUNCTIONS))  # fmt: skip
    signature = FUNCTIONS[name]
    most = len(signature.arguments)
    if len(kinds) < most - signature.optional or (len(kinds) > most and not signature.variadic):
        fail("DM-OPA-013", f"`{name}` does not take {len(kinds)} arguments", position, expected=f"{most}")
    for index, kind in enumerate(kinds):
        _need(kind, signature.arguments[min(index, most - 1)], f"`{name}`", node.arguments[index].position)
    if signature.constant is not None and signature.constant < len(kinds):
        _check_constant(name, node.arguments[signature.constant])
    if callable(signature.result):
        result = signature.result(kinds)
        if result is Kind.OTHER:
            fail("DM-OPA-013", f"`{name}` mixes {', '.join(kinds)}", position, expected="values of one type")
        return result
    return signature.result


def _check_constant(name: str, argument: Node) -> None:
    if not isinstance(argument, Literal) or argument.value is None:
        fail("DM-OPA-013", f"this argument of `{name}` has to be a constant", argument.position)
    if isinstance(argument.value, str):
        try:
            pl.Series([""]).str.contains(argument.value)
        except pl.exceptions.ComputeError as error:
            reason = str(error).strip().splitlines()[-1]
            fail("DM-OPA-014", f"the pattern is not usable ({reason})", argument.position,
                 expected="a regular expression without look-around or back-references")  # fmt: skip
