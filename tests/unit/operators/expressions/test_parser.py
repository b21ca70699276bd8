"""Syntax of the expression language: precedence, positions of errors, limits."""

import pytest

from datamill.errors import DatamillError
from datamill.operators.expressions import columns_of, parse, render
from datamill.operators.expressions.syntax import Binary, Call, Column, In, IsNull, Literal, Unary


def lit(value: object) -> Literal:
    return Literal(value, position=0)  # type: ignore[arg-type]  # any literal


def col(name: str) -> Column:
    return Column(name, position=0)


def binary(operator: str, left: object, right: object) -> Binary:
    return Binary(operator, left, right, position=0)  # type: ignore[arg-type]  # nodes


@pytest.mark.parametrize(
    ("source", "tree"),
    [
        ("1", lit(1)),
        ("-1.5", lit(-1.5)),
        ("1e3", lit(1000.0)),
        (".5", lit(0.5)),
        ("true", lit(True)),
        ("'it''".replace("''", "\\'s'"), lit("it's")),
        (r'"a\n\"b\""', lit('a\n"b"')),
        ("文本", col("文本")),
        ("`a b.c`", col("a b.c")),
        ("a or b and c", binary("or", col("a"), binary("and", col("b"), col("c")))),
        ("(a or b) and c", binary("and", binary("or", col("a"), col("b")), col("c"))),
        ("a - b - c", binary("-", binary("-", col("a"), col("b")), col("c"))),
        ("a + b * c", binary("+", col("a"), binary("*", col("b"), col("c")))),
        ("not a == b", Unary("not", binary("==", col("a"), col("b")), position=0)),
        ("-a * b", binary("*", Unary("-", col("a"), position=0), col("b"))),
        ("a is not null", IsNull(col("a"), True, position=0)),
        ("a not in [1, -2]", In(col("a"), (lit(1), lit(-2)), True, position=0)),
        ("len(a)", Call("len", (col("a"),), position=0)),
    ],
)
def test_trees(source: str, tree: object) -> None:
    assert parse(source) == tree


@pytest.mark.parametrize(
    ("source", "character"),
    [
        ("a = 1", 3),
        ("a.b", 2),
        ("a ==", 5),
        ("(a", 3),
        ("a b", 3),
        ("a < b < c", 7),
        ("a in []", 7),
        ("a in [b]", 7),
        ("'open", 1),
        (r"'\x'", 3),
        ("a && b", 3),
        ("__import__('os') ; 1", 18),
        ("lambda: 1", 7),
        ("9223372036854775808", 1),
        ("", 1),
    ],
)
def test_errors_say_where(source: str, character: int) -> None:
    with pytest.raises(DatamillError) as caught:
        parse(source)
    assert caught.value.code == "DM-OPA-010"
    assert f"at character {character}" in str(caught.value)
    assert caught.value.issues[0].context["position"] == character - 1


@pytest.mark.parametrize("source", ["(" * 3000, "not " * 900 + "a", "-" * 3000 + "1", "a" + "+a" * 1500, "a" * 5000])
def test_hostile_depth_is_an_error_not_a_crash(source: str) -> None:
    with pytest.raises(DatamillError, match="DM-OPA-010"):
        parse(source)


def test_columns_are_listed_once_in_order() -> None:
    assert columns_of(parse("b > 1 and a < 2 or b == 3 and len(`c d`) > 0")) == ("b", "a", "c d")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("((a))", "`a`"),
        ("(a and b) or c", "`a` and `b` or `c`"),
        ("a and (b or c)", "`a` and (`b` or `c`)"),
        ("a - (b - c)", "`a` - (`b` - `c`)"),
        ("not (a and b)", "not (`a` and `b`)"),
        ("(a + 1) is null", "`a` + 1 is null"),
        ("-(a + 1)", "-(`a` + 1)"),
    ],
)
def test_render_uses_the_fewest_parentheses(source: str, text: str) -> None:
    assert render(parse(source)) == text
    assert parse(text) == parse(source)
