from pathlib import Path

import pytest

from datamill.errors import ExitCode, PlanError
from datamill.workflows.yaml_file import MAX_BYTES, MAX_DEPTH, MAX_NODES, dump, load, parse

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 8)
)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: 1\nb: !!python/object/apply:os.system ['true']\n", "DM-PLAN-002", 2),
        ("a: 1\nb:\n  - !include other.yaml\n", "DM-PLAN-002", 3),
        ("a: !local {b: 1}\n", "DM-PLAN-002", 1),
        ("a: !!binary aGVsbG8=\n", "DM-PLAN-002", 1),
        ("x: 1\na: !!set {x, y}\n", "DM-PLAN-002", 2),
        ("a: !!omap [x: 1]\n", "DM-PLAN-002", 1),
        ("a: 1\nb: 2\na: 3\n", "DM-PLAN-001", 3),
        ("steps:\n  - {id: x, id: y}\n", "DM-PLAN-001", 2),
        ("a:\n\t- x\n", "DM-PLAN-001", 2),
        ("a: [1, 2\n", "DM-PLAN-001", 2),
        ("a: 1\n---\nb: 2\n", "DM-PLAN-001", 2),
        ("? [a, b]\n: 1\n", "DM-PLAN-001", 1),
        ("a: \0x\n", "DM-PLAN-001", None),
        ('a: "\\ud800"\n', "DM-PLAN-001", 1),
        ("- a\n", "DM-PLAN-004", 1),
        ("", "DM-PLAN-004", 1),
        ("just words\n", "DM-PLAN-004", 1),
        (BOMB, "DM-PLAN-003", None),
        ("a: " + "[" * 5000 + "]" * 5000, "DM-PLAN-003", None),
        ("a: " + "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), "DM-PLAN-003", 1),
        ("a: '" + "x" * MAX_BYTES + "'", "DM-PLAN-003", None),
    ],
)
def test_what_is_not_plain_data_is_refused_with_its_line(text: str, code: str, line: int | None) -> None:
    with pytest.raises(PlanError) as refused:
        parse(text, "w.yaml")
    issue = refused.value.issues[0]
    assert issue.code == code
    assert issue.file == "w.yaml"
    assert refused.value.exit_code is ExitCode.INVALID
    if line is not None:
        assert issue.line == line


def test_limits_let_a_large_honest_file_through() -> None:
    wide = "a: [" + ", ".join("1" for _ in range(MAX_NODES // 2)) + "]\n"
    assert len(parse(wide).data["a"]) == MAX_NODES // 2
    deep = "a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert parse(deep).data["a"] is not None


def test_values_become_plain_python_values() -> None:
    text = "i: 0x10\nf: 1e3\nb: true\nn: ~\ns: '007'\nd: 2026-11-30\nu: 语言\n7: seven\nt: &t true\nl: [*t, no]\n"
    data = parse(text).data
    assert data == {
        "i": 16, "f": 1000.0, "b": True, "n": None, "s": "007", "d": "2026-11-30", "u": "语言", "7": "seven",
        "t": True, "l": [True, "no"],
    }  # fmt: skip
    assert {type(value) for value in data.values()} == {int, float, bool, type(None), str, list}


def test_aliases_and_merges_are_data() -> None:
    data = parse("base: &base {min: 1, unit: chars}\nuse:\n  <<: *base\n  min: 2\n").data
    assert data["use"] == {"min": 2, "unit": "chars"}


@pytest.mark.parametrize(
    ("text", "line", "name"),
    [
        ("a: &x [*x]\n", 1, "x"), ("a: &x {b: *x}\n", 1, "x"), ("a: &x {<<: *x, c: 1}\n", 1, "x"),
        ("n: 1\na: &x\n  - 1\n  - deep: {er: [2, *x]}\n", 4, "x"), ("a: &x [&y [*x]]\n", 1, "x"),
        ("k: &x 1\na: &x [*x]\n", 2, "x"), ("a: &x [1]\nb: &x [2, *x]\n", 2, "x"), ("&r a: &s\n  b: *s\n", 2, "s"),
        ("&whole\na: 1\nb:\n  - *whole\n", 4, "whole"), ("? &x [1, *x]\n: 1\n", 1, "x"),
    ],
)  # fmt: skip
def test_a_value_that_contains_itself_is_refused_with_the_line_of_the_alias(text: str, line: int, name: str) -> None:
    with pytest.raises(PlanError) as refused:
        parse(text, "w.yaml")
    issue = refused.value.issues[0]
    assert (issue.code, issue.file, issue.line) == ("DM-PLAN-025", "w.yaml", line)
    assert f"`*{name}` stands inside it" in issue.message
    assert f"`*{name}`" in str(issue.fix)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: &x [1]\nb: [*x, *x]\n", {"a": [1], "b": [[1], [1]]}), ("a: &x 1\nb: [*x]\n", {"a": 1, "b": [1]}),
        ("a: &x []\nb: &y [*x]\nc: {d: *y, e: *x}\n", {"a": [], "b": [[]], "c": {"d": [[]], "e": []}}),
        ("a: 'R&D * 2'\nb: '&x [*x]'\n", {"a": "R&D * 2", "b": "&x [*x]"}), ("a: &x\nb: *x\n", {"a": None, "b": None}),
        ("a: [&x [1], *x]\n", {"a": [[1], [1]]}), ("# &x [*x]\na: data/*.jsonl & more\n", {"a": "data/*.jsonl & more"}),
    ],
)  # fmt: skip
def test_aliases_beside_their_values_stay_data(text: str, data: object) -> None:
    assert parse(text).data == data


def test_every_value_knows_its_line() -> None:
    document = parse("# head\nname: x\nsteps:\n  - id: a\n    params:\n      min: 1\n  - {id: b, params: {min: 2}}\n")
    assert document.line(("name",)) == 2
    assert document.line(("steps", 0, "params", "min")) == 6
    assert document.line(("steps", 1, "params", "min")) == 7
    assert document.line(("steps", 0, "params", "max")) == 5, "the deepest part that exists"
    assert document.line(("nowhere",)) == 1


def test_comments_order_and_quotes_survive_a_round_trip() -> None:
    text = "# why this file\nversion: 1\nname: demo   # short\nsteps:\n  - id: b\n    why: 'said so'\n  # between\n  - id: a\n"
    document = parse(text)
    written = dump(document.tree)
    for comment in ("# why this file", "# short", "# between"):
        assert comment in written
    assert written.index("id: b") < written.index("id: a")
    assert dump(parse(written).tree) == written, "writing is idempotent"
    document.tree["steps"][0]["id"] = "c"
    assert dump(document.tree) == written.replace("id: b", "id: c"), "an edit touches only its own line"


def test_a_byte_order_mark_is_read_over_and_a_missing_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: x\n")
    assert load(path).data == {"name": "x"}
    path.write_bytes(b"name: \xff\n")
    for bad in (path, tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(PlanError) as refused:
            load(bad)
        assert refused.value.code == "DM-PLAN-005"
        assert refused.value.issues[0].file == str(bad)
