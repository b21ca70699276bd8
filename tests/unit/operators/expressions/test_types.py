"""Type checking before any row is read."""

import pytest

from datamill.errors import DatamillError
from datamill.operators.declaration import ColumnType
from datamill.operators.expressions import Kind, kind_of, kinds_of, parse, type_of

COLUMNS = {
    "text": Kind.TEXT,
    "n": Kind.INTEGER,
    "x": Kind.FRACTION,
    "ok": Kind.BOOLEAN,
    "tags": Kind.LIST,
    "meta": Kind.OTHER,
    "nothing": Kind.NULL,
}


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("n + 1", Kind.INTEGER),
        ("n + x", Kind.FRACTION),
        ("n / 2", Kind.FRACTION),
        ("text + 'a'", Kind.TEXT),
        ("n > 1 and ok", Kind.BOOLEAN),
        ("meta is null", Kind.BOOLEAN),
        ("tags is not null", Kind.BOOLEAN),
        ("nothing > 1", Kind.BOOLEAN),
        ("len(tags) + len(text)", Kind.INTEGER),
        ("coalesce(n, x)", Kind.FRACTION),
        ("coalesce(nothing, text)", Kind.TEXT),
        ("round(x, 2)", Kind.FRACTION),
        ("abs(n)", Kind.INTEGER),
        ("text in ['a', 'b']", Kind.BOOLEAN),
        ("matches(text, '^a+$')", Kind.BOOLEAN),
        ("null", Kind.NULL),
    ],
)
def test_kinds(source: str, kind: Kind) -> None:
    assert type_of(parse(source), COLUMNS) is kind


@pytest.mark.parametrize(
    ("source", "code", "character"),
    [
        ("n > 'a'", "DM-OPA-013", 3),
        ("n and ok", "DM-OPA-013", 3),
        ("not n", "DM-OPA-013", 1),
        ("-text", "DM-OPA-013", 1),
        ("text + 1", "DM-OPA-013", 6),
        ("meta == 'a'", "DM-OPA-013", 6),
        ("n == null", "DM-OPA-013", 3),
        ("ok < ok", "DM-OPA-013", 4),
        ("len(n)", "DM-OPA-013", 5),
        ("n in [1, 'a']", "DM-OPA-013", 10),
        ("coalesce(n, text)", "DM-OPA-013", 1),
        ("len(text, text)", "DM-OPA-013", 1),
        ("len()", "DM-OPA-013", 1),
        ("matches(text, text)", "DM-OPA-013", 15),
        ("txt == 'a'", "DM-OPA-011", 1),
        ("1 + size(text)", "DM-OPA-012", 5),
        ("eval('1')", "DM-OPA-012", 1),
        (r"matches(text, '(a)\\1')", "DM-OPA-014", 15),
        ("matches(text, '(?<=a)b')", "DM-OPA-014", 15),
        ("matches(text, '[')", "DM-OPA-014", 15),
    ],
)
def test_errors_have_code_and_character(source: str, code: str, character: int) -> None:
    with pytest.raises(DatamillError) as caught:
        type_of(parse(source), COLUMNS)
    assert caught.value.code == code
    assert caught.value.issues[0].context["position"] == character - 1


def test_misspelt_columns_and_functions_get_the_nearest() -> None:
    with pytest.raises(DatamillError, match="did you mean `text`"):
        type_of(parse("txt == 'a'"), COLUMNS)
    with pytest.raises(DatamillError, match="did you mean `starts_with`"):
        type_of(parse("startswith(text, 'a')"), COLUMNS)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("string", Kind.TEXT),
        ("large_string", Kind.TEXT),
        ("int64", Kind.INTEGER),
        ("uint8", Kind.INTEGER),
        ("double", Kind.FRACTION),
        ("float", Kind.FRACTION),
        ("bool", Kind.BOOLEAN),
        ("list<item: string>", Kind.LIST),
        ("json", Kind.OTHER),
        ("struct<a: int64>", Kind.OTHER),
        ("null", Kind.NULL),
    ],
)
def test_kinds_of_arrow_types(dtype: str, kind: Kind) -> None:
    assert kind_of(dtype) is kind
    assert kinds_of({"c": ColumnType(dtype)}) == {"c": kind}
