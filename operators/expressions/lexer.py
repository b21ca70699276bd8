"""Tokens of the expression language: one left-to-right pass, linear in the length of the text."""

import re
from dataclasses import dataclass
from enum import StrEnum

from datamill.operators.expressions.syntax import MAX_LENGTH, fail


class TokenKind(StrEnum):
    """Classes of tokens."""

    NUMBER = "number"
    STRING = "string"
    NAME = "name"
    COLUMN = "column"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token; `text` is decoded for strings and quoted columns."""

    kind: TokenKind
    text: str
    position: int


_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(
    r"""(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[^\W\d]\w*)
      | `(?P<column>[^`\n]+)`
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<symbol>==|!=|<=|>=|[-+*/%<>()\[\],])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_HINTS = {
    "=": "write `==` to compare",
    "&": "write `and`",
    "|": "write `or`",
    "!": "write `not`",
    ".": "there are no attributes; put a column name with a dot between backticks",
    '"': "close the quotation mark",
    "'": "close the quotation mark",
    "`": "close the backtick",
}


def tokens(source: str) -> tuple[Token, ...]:
    """Cut `source` into tokens, the last one `END`.

    Raises:
        DatamillError: `DM-OPA-010` at the first character that begins no token, or when the text is too long.
    """
    if len(source) > MAX_LENGTH:
        fail("DM-OPA-010", f"the expression is longer than {MAX_LENGTH} characters", MAX_LENGTH)
    found: list[Token] = []
    position = _SPACE.match(source).end()  # type: ignore[union-attr]  # `\s*` always matches
    while position < len(source):
        token, position = _token(source, position)
        found.append(token)
        position = _SPACE.match(source, position).end()  # type: ignore[union-attr]  # as above
    return (*found, Token(TokenKind.END, "", len(source)))


def _token(source: str, position: int) -> tuple[Token, int]:
    match = _TOKEN.match(source, position)
    if match is None or match.lastgroup is None:
        char = source[position]
        fail("DM-OPA-010", f"`{char}` cannot stand here", position, fix=_HINTS.get(char))
    kind = TokenKind(match.lastgroup)
    text = match[kind]
    if kind is TokenKind.STRING:
        text = _unescape(text[1:-1], position + 1)
    return Token(kind, text, position), match.end()


def _unescape(body: str, position: int) -> str:
    out: list[str] = []
    index = 0
    while index < len(body):
        char = body[index]
        if char == "\\":
            index += 1
            if body[index] not in _ESCAPES:
                fail("DM-OPA-010", f"unknown escape `\\{body[index]}`", position + index, fix="write `\\\\` for `\\`")
            char = _ESCAPES[body[index]]
        out.append(char)
        index += 1
    return "".join(out)
