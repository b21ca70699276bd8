"""Syntax tree of the expression language, its errors, and its canonical text."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from datamill.errors import DatamillError, ExitCode

Value = str | int | float | bool | None
MAX_LENGTH = 4000
"""Characters in an expression."""
MAX_NESTING = 24
"""Parentheses, calls and signs inside each other."""
MAX_DEPTH = 60
"""Depth of a tree; keeps every recursive pass far from the interpreter's limit."""


@dataclass(frozen=True)
class Node:
    """Base of all nodes; `position` is the 0-based character where the node begins and is no part of equality."""

    position: int = field(compare=False, kw_only=True)

    @property
    def children(self) -> tuple["Node", ...]:
        """Nodes directly below."""
        return ()


@dataclass(frozen=True)
class Literal(Node):
    """A constant."""

    value: Value


@dataclass(frozen=True)
class Column(Node):
    """The value of a column in the row at hand."""

    name: str


@dataclass(frozen=True)
class Unary(Node):
    """`not x` or `-x`."""

    operator: str
    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True)
class Binary(Node):
    """Two operands around an operator."""

    operator: str
    left: Node
    right: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """Left and right operand."""
        return (self.left, self.right)


@dataclass(frozen=True)
class IsNull(Node):
    """`x is null`, or `x is not null` when negated."""

    operand: Node
    negated: bool

    @property
    def children(self) -> tuple[Node, ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True)
class In(Node):
    """`x in [...]`, or `x not in [...]` when negated."""

    operand: Node
    values: tuple[Literal, ...]
    negated: bool

    @property
    def children(self) -> tuple[Node, ...]:
        """The operand; the values are constants."""
        return (self.operand,)


@dataclass(frozen=True)
class Call(Node):
    """A function of the fixed table."""

    function: str
    arguments: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """The arguments."""
        return self.arguments


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it."""
    yield node
    for child in node.children:
        yield from walk(child)


def columns_of(node: Node) -> tuple[str, ...]:
    """Names of the columns an expression reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(part.name for part in walk(node) if isinstance(part, Column)))


def fail(code: str, message: str, position: int, **details: Any) -> NoReturn:
    """Raise the error every stage of the language raises: what, and at which character (1-based for people)."""
    raise DatamillError(
        code,
        f"{message} at character {position + 1}",
        exit_code=ExitCode.INVALID,
        context={"position": position},
        **details,
    )


_LEVELS = {"or": 1, "and": 2, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
_NOT, _COMPARISON, _SUM, _MINUS, _ATOM = 3, 4, 5, 7, 8


def _level(node: Node) -> int:
    """How tightly the outermost operator of `node` binds."""
    match node:
        case Binary(operator=operator):
            return _LEVELS.get(operator, _COMPARISON)
        case Unary(operator=operator):
            return _NOT if operator == "not" else _MINUS
        case IsNull() | In():
            return _COMPARISON
        case Literal(value=int() | float() as value) if value < 0:
            return _MINUS
    return _ATOM


def _within(node: Node, level: int) -> str:
    """Text of `node` as an operand that has to bind at least as tightly as `level`."""
    text = render(node)
    return text if _level(node) >= level else f"({text})"


def render(node: Node) -> str:  # noqa: PLR0911  one return per node class
    """Canonical text with the fewest parentheses; `parse(render(node)) == node` for all that `parse` returns."""
    match node:
        case Literal(value=value):
            return _render_value(value)
        case Column(name=name):
            return f"`{name}`"
        case Unary(operator=operator, operand=operand):
            return f"not {_within(operand, _NOT)}" if operator == "not" else f"-{_within(operand, _MINUS)}"
        case Binary(operator=operator, left=left, right=right):
            level = _level(node)
            first = _SUM if level == _COMPARISON else level
            return f"{_within(left, first)} {operator} {_within(right, level + 1)}"
        case IsNull(operand=operand, negated=negated):
            return f"{_within(operand, _SUM)} is {'not ' if negated else ''}null"
        case In(operand=operand, values=values, negated=negated):
            listed = ", ".join(render(value) for value in values)
            return f"{_within(operand, _SUM)} {'not ' if negated else ''}in [{listed}]"
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(render(argument) for argument in arguments)})"
    raise TypeError(f"not a node of the expression language: {node!r}")


def _render_value(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
        return '"' + "".join(escapes.get(char, char) for char in value) + '"'
    return repr(value)
