"""Changes of workflows as data: the graph stays whole, and the nearest valid plan is what the compiler suggests."""

from pathlib import Path
from typing import Any

import pytest
from support.project import WORKFLOW, make_project

from datamill.agents.rewire import carried_over, nearest_valid, needs_of, without_steps
from datamill.errors import PlanError
from datamill.workflows.compile import CompileOptions, compile_text


def flow(*steps: tuple[str, list[str] | str]) -> dict[str, Any]:
    made = [{"id": name, "operator": "x.y", "needs": needs} for name, needs in steps]
    return {"steps": made, "outputs": {"out": {"from": steps[-1][0]}}, "inputs": {"in": {"path": "a"}}}


def needs(workflow: dict[str, Any]) -> dict[str, list[str]]:
    return {step["id"]: needs_of(step) for step in workflow["steps"]}


@pytest.mark.parametrize(
    ("gone", "expected", "source"),
    [
        ({"a"}, {"b": ["in"], "c": ["b"]}, "c"),
        ({"b"}, {"a": ["in"], "c": ["a"]}, "c"),
        ({"c"}, {"a": ["in"], "b": ["a"]}, "b"),
        ({"a", "b", "c"}, {}, "in"),
        (set(), {"a": ["in"], "b": ["a"], "c": ["b"]}, "c"),
    ],
)
def test_children_of_a_removed_step_get_its_parent(gone: set[str], expected: Any, source: str) -> None:
    left = without_steps(flow(("a", "in"), ("b", ["a"]), ("c", "b")), lambda step: step["id"] in gone)
    assert needs(left) == expected
    assert left["outputs"]["out"]["from"] == source


def test_a_diamond_does_not_name_a_parent_twice() -> None:
    left = without_steps(flow(("a", "in"), ("b", "in"), ("m", ["a", "b"])), lambda step: step["id"] in {"a", "b"})
    assert needs(left) == {"m": ["in"]}


def test_the_original_is_left_alone() -> None:
    before = flow(("a", "in"), ("b", "a"))
    without_steps(before, lambda step: step["id"] == "a")
    assert needs(before) == {"a": ["in"], "b": ["a"]}


@pytest.mark.parametrize(
    ("old", "new", "told", "kept"),
    [
        ("dedup.exact", "dedup.exakt", "`dedup.exakt` -> `dedup.exact`", "dedup.exact"),
        ("min: 12", "minn: 12, max: 99", "size.minn: renamed `min`", "min: 12"),
        ("unit: chars", "unit: elephants", "size.unit", "max_bad"),
        ("{n: 40}", "{n: 40, shine: 1}", "pick.shine: taken out", "n: 40"),
        ("operator: sample.random", "operator: qqq.zzz", "- pick (qqq.zzz)", "format.chat"),
    ],
)
def test_the_nearest_valid_plan(old: str, new: str, told: str, kept: str, tmp_path: Path) -> None:
    options = CompileOptions(make_project(tmp_path))
    broken = WORKFLOW.replace(old, new, 1)
    with pytest.raises(PlanError):
        compile_text(broken, options)
    found = nearest_valid(broken, options)
    assert found is not None
    text, changes = found
    assert compile_text(text, options).outputs["clean"].path == "out/clean.jsonl"
    assert any(told in change for change in changes), changes
    assert kept in text


@pytest.mark.parametrize(
    ("old", "new"),
    [("path: rows.jsonl", "path: gone.jsonl"), ("version: 1", "version: ["), ("path: out", "path: ../o")],
)
def test_inputs_and_outputs_are_never_mended(old: str, new: str, tmp_path: Path) -> None:
    options = CompileOptions(make_project(tmp_path))
    assert nearest_valid(WORKFLOW.replace(old, new), options) is None


def test_a_valid_plan_is_its_own_nearest(tmp_path: Path) -> None:
    assert nearest_valid(WORKFLOW, CompileOptions(make_project(tmp_path))) == (WORKFLOW, [])


def test_reader_options_stay_with_the_same_file_only() -> None:
    before = {
        "inputs": {"in": {"path": "a", "options": {"max_bad": 0.5}}},
        "steps": [],
        "outputs": {},
        "params": {"k": 1},
    }
    same = carried_over(flow(("a", "in")), before)
    assert same["inputs"]["in"]["options"] == {"max_bad": 0.5}
    assert same["params"] == {"k": 1}
    other = {**before, "inputs": {"in": {"path": "b", "options": {"max_bad": 0.5}}}}
    assert "options" not in carried_over(flow(("a", "in")), other)["inputs"]["in"]
    assert carried_over(flow(("a", "in")), None) == flow(("a", "in"))
