"""Wall time by kind: every step has one, sums are kept, and the line names the largest first."""

from pathlib import Path

import pytest
from support.project import approved_run, compiled, make_project

from datamill.workflows.run_record import RunRecord
from datamill.workflows.runner import StepResult
from datamill.workflows.timing import KINDS, kind_of, time_line, time_spent


def test_kinds_of_steps(tmp_path: Path) -> None:
    plan = compiled(make_project(tmp_path))
    kinds = {step.id: kind_of(step) for step in plan.steps}
    assert kinds == {
        "load": "read", "fix": "compute", "size": "compute", "exact": "shuffle", "pick": "shuffle", "chat": "compute",
    }  # fmt: skip


def test_seconds_add_up(tmp_path: Path) -> None:
    plan = compiled(make_project(tmp_path))
    results = {step.id: StepResult(seconds=1.5) for step in plan.steps if step.id != "chat"}
    spent = time_spent(plan, results, 2.0, 0.25)
    assert spent == {"start": 2.0, "read": 1.5, "compute": 3.0, "shuffle": 3.0, "ask": 0.0, "write": 0.25}
    assert tuple(spent) == KINDS


@pytest.mark.parametrize(
    ("spent", "line"),
    [
        ({"read": 1.0, "shuffle": 12.34, "ask": 0.01}, "shuffle 12.3 s, read 1.0 s"),
        ({}, "next to none"),
        ({"compute": 0.04}, "next to none"),
    ],
)
def test_line(spent: dict[str, float], line: str) -> None:
    assert time_line(spent) == line


def test_a_run_says_where_its_time_went(tmp_path: Path) -> None:
    result = approved_run(make_project(tmp_path))
    assert set(result.spent) == set(KINDS)
    assert 0 < sum(result.spent.values()) <= result.seconds + 0.1
    state = RunRecord(result.folder).state()
    assert state["spent"] == result.spent
    assert state["engine"] == {"executor": "local", "workers": 1, "links": {}}
