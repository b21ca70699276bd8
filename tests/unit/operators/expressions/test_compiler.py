"""Values of expressions: three-valued logic, arithmetic, functions, row by row as a reference says."""

from typing import Any

import pyarrow as pa
import pytest
from support.tables import table

from datamill.operators.expressions import evaluate, parse

ROWS = table(
    {"n": pa.int64(), "x": pa.float64(), "s": pa.string(), "ok": pa.bool_(), "l": pa.list_(pa.int64()), "z": pa.null()},
    n=[1, -2, None],
    x=[1.5, float("nan"), None],
    s=["Hello wORLD", "我们的 deadline", None],
    ok=[True, False, None],
    l=[[1, 2], [], None],
    z=[None, None, None],
)


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ("n > 0", [True, False, None]),
        ("not ok", [False, True, None]),
        ("ok or true", [True, True, True]),
        ("ok and false", [False, False, False]),
        ("ok and true", [True, False, None]),
        ("n is null", [False, False, True]),
        ("x is null", [False, True, True]),
        ("x > 0", [True, None, None]),
        ("n / 0", [None, None, None]),
        ("n % 0", [None, None, None]),
        ("n / 2", [0.5, -1.0, None]),
        ("7 % 3", [1, 1, 1]),
        ("-n", [-1, 2, None]),
        ("-n * 2 - 1", [-3, 3, None]),
        ("1 - 2 - 3", [-4, -4, -4]),
        ("n in [1, 2.5]", [True, False, None]),
        ("n not in [1]", [False, True, None]),
        ("s in ['Hello wORLD']", [True, False, None]),
        ("len(s)", [11, 12, None]),
        ("len(l)", [2, 0, None]),
        ("word_count(s)", [2, 4, None]),
        ("lower(s)", ["hello world", "我们的 deadline", None]),
        ("upper('ß') == 'SS'", [True, True, True]),
        ("contains(s, 'wORLD')", [True, False, None]),
        ("contains(s, '.')", [False, False, None]),
        ("starts_with(s, 'Hello')", [True, False, None]),
        ("ends_with(s, 'line')", [False, True, None]),
        ("matches(s, '(?i)world$')", [True, False, None]),
        ("trim('  a ')", ["a", "a", "a"]),
        ("abs(n)", [1, 2, None]),
        ("round(x)", [2.0, None, None]),
        ("coalesce(n, x, 9)", [1.0, -2.0, 9.0]),
        ("coalesce(z, s, '-')", ["Hello wORLD", "我们的 deadline", "-"]),
        ("s + '!'", ["Hello wORLD!", "我们的 deadline!", None]),
        ("z > 1", [None, None, None]),
        ("z is null", [True, True, True]),
        ("not (z == 'a')", [None, None, None]),
        ("len(z)", [None, None, None]),
        ("1 < 2", [True, True, True]),
    ],
)
def test_values(source: str, values: list[Any]) -> None:
    result, _ = evaluate(parse(source), ROWS)
    assert result.to_list() == values


def test_constants_have_a_value_for_every_row_and_for_none() -> None:
    assert len(evaluate(parse("1 + 1"), ROWS)[0]) == 3
    assert len(evaluate(parse("1 + 1"), ROWS.slice(0, 0))[0]) == 0


def test_integers_stay_integers_beyond_the_precision_of_fractions() -> None:
    rows = table(n=[2**60 + 1])
    assert evaluate(parse("n + 1"), rows)[0].to_list() == [2**60 + 2]


@pytest.mark.parametrize("source", ["n > 0", "s + 'a'", "round(x, 1)", "len(l)", "z is null"])
def test_types_do_not_depend_on_the_rows(source: str) -> None:
    whole, kind = evaluate(parse(source), ROWS)
    empty, same = evaluate(parse(source), ROWS.slice(0, 0))
    assert (empty.dtype, same) == (whole.dtype, kind)
