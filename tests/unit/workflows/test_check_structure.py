from pathlib import Path

import pytest
from support.project import compiled, make_project

from datamill.errors import ExitCode, Issue, PlanError

HEAD = "version: 1\nname: small\ninputs:\n  load: {path: rows.jsonl, options: {max_bad: 0.5}}\n"


def issues_of(folder: Path, text: str) -> list[Issue]:
    with pytest.raises(PlanError) as refused:
        compiled(folder, text)
    assert refused.value.exit_code is ExitCode.INVALID
    return list(refused.value.issues)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("structure"), count=20)


def test_all_findings_come_in_one_report_each_with_its_line_and_nearest_match(project: Path) -> None:
    text = """\
version: 1
name: small
inptus: {}
inputs:
  load: {path: rows.jsonl, formt: jsonl, options: {max_bad: 0.5}}
steps:
  - id: size
    operater: filter.length
    operator: filter.length
    needs: load
    params: {columns: [text], unit: chars, mn: 12}
  - {id: near, operator: dedup.minhsh, needs: size}
  - {id: fix, operator: text.fix_unicode, needs: lod, params: {columns: [txt]}}
outputs:
  clean: {from: sise, path: ../out.jsonl}
checks:
  - {on: clean, metric: rows}
"""
    found = {(issue.code, issue.line): issue.nearest for issue in issues_of(project, text)}
    assert found == {
        ("DM-PLAN-006", 3): "inputs",
        ("DM-PLAN-006", 5): "format",
        ("DM-PLAN-006", 8): "operator",
        ("DM-PLAN-013", 13): "load",
        ("DM-PLAN-013", 15): "size",
        ("DM-PLAN-007", 11): "min",
        ("DM-OP-001", 12): "dedup.minhash",
        ("DM-PATH-002", 15): None,
        ("DM-PLAN-053", 17): None,
        ("DM-PLAN-014", 6): None,
    }


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("steps: [size]\n", "DM-PLAN-008", 5),
        ("steps: {size: 1}\n", "DM-PLAN-008", 5),
        ("steps:\n  - {id: Size, operator: dedup.exact, needs: load}\n", "DM-PLAN-008", 6),
        ("steps:\n  - {operator: dedup.exact, needs: load}\n", "DM-PLAN-008", 6),
        ("steps:\n  - {id: a, operator: dedup.exact, needs: load, on_error: ignore}\n", "DM-PLAN-008", 6),
        ("seed: -1\n", "DM-PLAN-008", 5),
        ("seed: many\n", "DM-PLAN-008", 5),
        ("steps:\n  - {id: load, operator: dedup.exact, needs: load}\n", "DM-PLAN-012", 6),
        ("steps:\n  - {id: a, operator: dedup.exact, needs: []}\n", "DM-PLAN-013", 6),
        ("steps:\n  - {id: a, operator: read.jsonl, needs: load, params: {path: x}}\n", "DM-PLAN-017", 6),
        ("outputs:\n  a: {from: load, path: x.jsonl}\n  b: {from: load, path: x.jsonl}\n", "DM-PLAN-015", 7),
        ("checks:\n  - {on: load, metric: rows, min: 3, max: 2}\n", "DM-PLAN-053", 6),
        ("outputs:\n  a: {from: load, path: x.csv, format: csv, llamafactory: {name: a}}\n", "DM-PLAN-050", 6),
    ],
)
def test_bad_structure(project: Path, body: str, code: str, line: int) -> None:
    found = issues_of(project, HEAD + body)
    assert (code, line) in [(issue.code, issue.line) for issue in found]


def test_a_cycle_names_its_steps_and_a_duplicate_id_is_found_among_steps(project: Path) -> None:
    cycle = """\
steps:
  - {id: a, operator: dedup.exact, needs: c, params: {columns: [text]}}
  - {id: b, operator: dedup.exact, needs: a, params: {columns: [text]}}
  - {id: c, operator: dedup.exact, needs: b, params: {columns: [text]}}
  - {id: d, operator: dedup.exact, needs: load, params: {columns: [text]}}
  - {id: d, operator: dedup.exact, needs: load, params: {columns: [text]}}
"""
    found = {issue.code: issue for issue in issues_of(project, HEAD + cycle)}
    assert "a, b, c" in found["DM-PLAN-014"].message
    assert (found["DM-PLAN-012"].line, found["DM-PLAN-012"].step) == (10, "d")


def test_one_parent_operators_refuse_two(project: Path) -> None:
    body = "steps:\n  - {id: a, operator: dedup.exact, needs: [load, load], params: {columns: [text]}}\n"
    (issue,) = issues_of(project, HEAD + body)
    assert issue.code == "DM-PLAN-018"
    assert "mix.concat" in str(issue.fix)


def test_unused_rows_are_a_warning_only(project: Path) -> None:
    body = "steps:\n  - {id: a, operator: dedup.exact, needs: load, params: {columns: [text]}}\n"
    plan = compiled(project, HEAD + body)
    assert [(note.code, note.step, note.severity) for note in plan.notes if note.code == "DM-PLAN-016"] == [
        ("DM-PLAN-016", "a", "warning")
    ]
    written = compiled(project, HEAD + body + "outputs:\n  o: {from: a, path: out/}\n")
    assert "DM-PLAN-016" not in [note.code for note in written.notes]
    assert written.outputs["o"].path == "out/o.jsonl"


def test_an_earlier_step_may_stand_below_in_the_file(project: Path) -> None:
    body = """\
steps:
  - {id: second, operator: dedup.exact, needs: first, params: {columns: [text]}}
  - {id: first, operator: text.fix_unicode, needs: load, params: {columns: [text]}}
"""
    assert [step.id for step in compiled(project, HEAD + body).steps] == ["load", "first", "second"]


@pytest.mark.parametrize("junk", ["steps:\n", "steps: 7\n", "steps:\n  - \n", "steps:\n  - [1]\n", "outputs: [a]\n"])
def test_junk_is_a_finding_and_never_a_traceback(project: Path, junk: str) -> None:
    found = issues_of(project, HEAD + junk)
    assert {issue.code for issue in found} == {"DM-PLAN-008"}
    old = "format_version: 0\n" + junk
    assert {issue.code for issue in issues_of(project, old)} <= {"DM-PLAN-008", "DM-PLAN-013"}
