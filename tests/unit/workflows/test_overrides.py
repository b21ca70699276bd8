from pathlib import Path
from typing import Any

import pytest
from support.project import compiled, make_project

from datamill.errors import PlanError
from datamill.workflows.findings import Findings
from datamill.workflows.overrides import apply_overrides
from datamill.workflows.yaml_file import parse

DATA: dict[str, Any] = {
    "seed": 1,
    "params": {"min": 3},
    "steps": [{"id": "size", "params": {"unit": "chars"}}, {"id": "near"}],
    "outputs": {"clean": {"from": "near"}},
}


def applied(**pairs: Any) -> tuple[dict[str, Any], list[str | None]]:
    findings = Findings(parse("a: 1\n"))
    changed = apply_overrides(DATA, {name.replace("__", "."): value for name, value in pairs.items()}, findings)
    return changed, [issue.nearest for issue in findings.issues]


def test_steps_go_by_id_and_everything_else_by_key() -> None:
    changed, issues = applied(
        seed=2, params__min=4, params__max=9, steps__size__params__unit="words", steps__near__params__threshold=0.7,
        outputs__clean__path="x.jsonl", run__budget__llm_usd=1,
    )  # fmt: skip
    assert issues == []
    assert changed["seed"] == 2
    assert changed["params"] == {"min": 4, "max": 9}
    assert changed["steps"] == [
        {"id": "size", "params": {"unit": "words"}}, {"id": "near", "params": {"threshold": 0.7}},
    ]  # fmt: skip
    assert changed["outputs"]["clean"] == {"from": "near", "path": "x.jsonl"}
    assert changed["run"] == {"budget": {"llm_usd": 1}}
    assert DATA["seed"] == 1
    assert "params" not in DATA["steps"][1]


@pytest.mark.parametrize(
    ("name", "close"),
    [("steps__siz__params__unit", "size"), ("outputs__claen__path", "clean"), ("sedd__x", "seed"), ("steps__0", None)],
)
def test_a_name_that_leads_nowhere_is_a_finding_with_the_nearest(name: str, close: str | None) -> None:
    changed, issues = applied(**{name: 1})
    assert issues == [close]
    assert changed == DATA


def test_overrides_are_checked_like_the_file_and_show_in_the_plan(tmp_path: Path) -> None:
    folder = make_project(tmp_path, count=20)
    plan = compiled(folder, overrides={"steps.size.params.min": 20, "steps.pick.params.n": 3})
    assert plan.step("size").params["min"] == 20
    assert plan.digest != compiled(folder).digest
    for name, value, code in (
        ("steps.size.params.mn", 1, "DM-PLAN-007"), ("steps.size.params.min", "many", "DM-PLAN-009"),
        ("outputs.clean.path", "../x.jsonl", "DM-PATH-002"), ("sed", 3, "DM-PLAN-006"),
        ("steps.chat.params.user", "lambda x: x", "DM-PLAN-011"), ("steps.none.params.x", 1, "DM-PLAN-060"),
    ):  # fmt: skip
        with pytest.raises(PlanError) as refused:
            compiled(folder, overrides={name: value})
        assert code in [issue.code for issue in refused.value.issues], name


def test_a_plan_with_overrides_keeps_them_when_it_is_saved(tmp_path: Path) -> None:
    """`runs resume` compiles the saved file again: it has to be the plan that ran."""
    folder = make_project(tmp_path, count=20)
    plan = compiled(folder, overrides={"steps.size.params.min": 20})
    assert compiled(folder, plan.yaml).digest == plan.digest
