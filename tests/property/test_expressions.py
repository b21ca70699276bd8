"""Properties of the expression language on arbitrary text and arbitrary trees."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import table

from datamill.errors import DatamillError
from datamill.operators.expressions import evaluate, parse, render
from datamill.operators.expressions.syntax import Binary, Call, Column, In, IsNull, Literal, Node, Unary

names = st.sampled_from(["n", "x", "s", "文", "a b"])
values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63) + 1, 2**63 - 1), st.text(max_size=8),
    st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip
literals = values.map(lambda value: Literal(value, position=0))
_lists = st.lists(literals, min_size=1, max_size=3)
leaves: st.SearchStrategy[Node] = st.one_of(literals, names.map(lambda name: Column(name, position=0)))


def _grown(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    operators = st.sampled_from(["or", "and", "==", "<", "+", "-", "*", "%"])
    minus = children.filter(lambda node: not (isinstance(node, Literal) and type(node.value) in {int, float}))
    return st.one_of(
        st.builds(lambda o, a, b: Binary(o, a, b, position=0), operators, children, children),
        children.map(lambda node: Unary("not", node, position=0)),
        minus.map(lambda node: Unary("-", node, position=0)),
        st.builds(lambda a, n: IsNull(a, n, position=0), children, st.booleans()),
        st.builds(lambda a, v, n: In(a, tuple(v), n, position=0), children, _lists, st.booleans()),
        st.builds(lambda a: Call("len", tuple(a), position=0), st.lists(children, max_size=2)),
    )


trees = st.recursive(leaves, _grown, max_leaves=12)
tokens = st.sampled_from(
    ["a", "n", "1", "2.5", "'t'", "(", ")", "[", "]", ",", "+", "-", "*", "/", "%", "==", "<", "and", "or", "not", "in",
     "is", "null", "true", "len", "matches", "`x`", " "]
)  # fmt: skip


@given(trees)
@settings(max_examples=300, deadline=None)
def test_render_and_parse_are_inverse(tree: Node) -> None:
    assert parse(render(tree)) == tree


@given(st.one_of(st.text(max_size=60), st.lists(tokens, max_size=25).map(" ".join)))
@settings(max_examples=500, deadline=None)
def test_arbitrary_text_gives_a_value_or_a_datamill_error(source: str) -> None:
    rows = table(a=["x", "yy"], n=[1, 2], x=[0.5, 1.5])
    code, length = "", 0
    try:
        length = len(evaluate(parse(source), rows)[0])
    except DatamillError as error:
        code = error.code
    assert length == 2 or code.startswith("DM-OPA-01")


@given(st.lists(st.one_of(st.none(), st.integers(-100, 100)), min_size=1, max_size=20), st.integers(-100, 100))
@settings(max_examples=100, deadline=None)
def test_a_condition_its_negation_and_null_partition_the_rows(numbers: list[int | None], bound: int) -> None:
    rows = table(n=[0, *numbers])
    yes = evaluate(parse(f"n > {bound}"), rows)[0]
    no = evaluate(parse(f"not n > {bound}"), rows)[0]
    unknown = evaluate(parse(f"(n > {bound}) is null"), rows)[0]
    assert [sum([a is True, b is True, c is True]) for a, b, c in zip(yes, no, unknown, strict=True)] == [1] * len(rows)
