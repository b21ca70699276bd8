"""Recursive-descent parser of the expression language.

From loosest to tightest: `or`, `and`, `not`, one comparison (no chains), `+ -`, `* / %`, unary `-`, atoms.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NoReturn

from datamill.operators.expressions.lexer import Token, TokenKind, tokens
from datamill.operators.expressions.syntax import (
    MAX_DEPTH,
    MAX_NESTING,
    Binary,
    Call,
    Column,
    In,
    IsNull,
    Literal,
    Node,
    Unary,
    Value,
    fail,
)

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}
_WORDS = frozenset({"and", "or", "not", "in", "is", *_CONSTANTS})
_INT64 = range(-(2**63), 2**63)


@lru_cache(maxsize=256)
def parse(source: str) -> Node:
    """The syntax tree of `source`.

    Raises:
        DatamillError: `DM-OPA-010` with the character where the text stops making sense.
    """
    node = _Parser(source).whole()
    _check_depth(node)
    return node


def _check_depth(root: Node) -> None:
    """Refuse trees that recursion could not walk: long chains are deep although they nest nothing."""
    pending = [(root, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            fail("DM-OPA-010", f"more than {MAX_DEPTH} operators depend on each other", node.position,
                 fix="use `in [...]`, or compute a part with columns.map first")  # fmt: skip
        pending.extend((child, depth + 1) for child in node.children)


class _Parser:
    def __init__(self, source: str) -> None:
        self._tokens = tokens(source)
        self._next = 0
        self._nesting = 0

    def whole(self) -> Node:
        node = self._or()
        if self._token.kind is not TokenKind.END:
            self._unexpected("an operator or the end")
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _at(self, *texts: str) -> bool:
        """Whether the next token is one of these symbols or reserved words."""
        return self._token.kind in {TokenKind.SYMBOL, TokenKind.NAME} and self._token.text in texts

    def _take(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _expect(self, text: str) -> Token:
        if not self._at(text):
            self._unexpected(f"`{text}`")
        return self._take()

    def _unexpected(self, expected: str) -> NoReturn:
        token = self._token
        what = "the expression ends" if token.kind is TokenKind.END else f"unexpected `{token.text}`"
        fail("DM-OPA-010", what, token.position, expected=expected)

    def _nested(self, rule: Callable[[], Node]) -> Node:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            fail("DM-OPA-010", f"the expression is nested deeper than {MAX_NESTING}", self._token.position)
        node = rule()
        self._nesting -= 1
        return node

    def _chain(self, rule: Callable[[], Node], *operators: str) -> Node:
        """Left-associative operators of one level."""
        node = rule()
        while self._at(*operators):
            token = self._take()
            node = Binary(token.text, node, rule(), position=token.position)
        return node

    def _or(self) -> Node:
        return self._chain(self._and, "or")

    def _and(self) -> Node:
        return self._chain(self._not, "and")

    def _not(self) -> Node:
        if not self._at("not"):
            return self._comparison()
        position = self._take().position
        return Unary("not", self._nested(self._not), position=position)

    def _comparison(self) -> Node:
        left = self._sum()
        if self._at(*_COMPARISONS):
            token = self._take()
            left = Binary(token.text, left, self._sum(), position=token.position)
        elif self._at("is"):
            position = self._take().position
            negated = bool(self._at("not") and self._take())
            self._expect("null")
            left = IsNull(left, negated, position=position)
        elif self._at("in", "not"):
            left = self._membership(left)
        if self._at(*_COMPARISONS, "is", "in"):
            fail("DM-OPA-010", "comparisons do not chain", self._token.position, fix="join two of them with `and`")
        return left

    def _membership(self, operand: Node) -> Node:
        position = self._token.position
        negated = bool(self._at("not") and self._take())
        self._expect("in")
        self._expect("[")
        values = [self._constant()]
        while self._at(","):
            self._take()
            values.append(self._constant())
        self._expect("]")
        return In(operand, tuple(values), negated, position=position)

    def _constant(self) -> Literal:
        position = self._token.position
        node = self._nested(self._unary)
        if not isinstance(node, Literal):
            fail("DM-OPA-010", "a list holds constants only", position)
        return node

    def _sum(self) -> Node:
        return self._chain(self._product, "+", "-")

    def _product(self) -> Node:
        return self._chain(self._unary, "*", "/", "%")

    def _unary(self) -> Node:
        if not self._at("-"):
            return self._atom()
        position = self._take().position
        operand = self._nested(self._unary)
        value = operand.value if isinstance(operand, Literal) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return Literal(-value, position=position)
        return Unary("-", operand, position=position)

    def _atom(self) -> Node:
        token = self._token
        if token.kind is TokenKind.NUMBER:
            return _number(self._take())
        if token.kind is TokenKind.STRING:
            return Literal(self._take().text, position=token.position)
        if token.kind is TokenKind.COLUMN:
            return Column(self._take().text, position=token.position)
        if token.kind is TokenKind.NAME and (token.text in _CONSTANTS or token.text not in _WORDS):
            return self._name()
        if not self._at("("):
            self._unexpected("a value, a column or `(`")
        self._take()
        node = self._nested(self._or)
        self._expect(")")
        return node

    def _name(self) -> Node:
        token = self._take()
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text], position=token.position)
        if not self._at("("):
            return Column(token.text, position=token.position)
        self._take()
        arguments: list[Node] = []
        while not self._at(")"):
            arguments.append(self._nested(self._or))
            if not self._at(")"):
                self._expect(",")
        self._take()
        return Call(token.text, tuple(arguments), position=token.position)


def _number(token: Token) -> Literal:
    if token.text.isdigit():
        value = int(token.text)
        if value not in _INT64:
            fail("DM-OPA-010", "this integer does not fit into 64 bits", token.position, fix="write it as `1e19`")
        return Literal(value, position=token.position)
    number = float(token.text)
    if number == float("inf"):
        fail("DM-OPA-010", "this number is too large", token.position)
    return Literal(number, position=token.position)
