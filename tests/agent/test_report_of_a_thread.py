"""What the report tells of a conversation: who said what, and what became of the first draft."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.agent import ASKED, LONGER, project, request, services

from datamill.agents.conversation import answer, start
from datamill.agents.services import ThreadServices
from datamill.workflows.run_record import find_run


@pytest.fixture
def at_work(tmp_path: Path) -> ThreadServices:
    return services(project(tmp_path / "project"))


def report_of(at_work: ThreadServices) -> tuple[dict[str, Any], str]:
    folder = find_run(at_work.project, "@last").folder
    page = (folder / "report.html").read_text(encoding="utf-8")
    return json.loads((folder / "report.json").read_text(encoding="utf-8")), page


def test_an_untouched_draft_has_one_turn_and_no_change(at_work: ThreadServices) -> None:
    turn = start(request(), at_work)
    answer(turn.thread, {"type": "approve", "digest": turn.payload["plan_digest"], "origin": "test"}, at_work)
    report, page = report_of(at_work)
    assert report["history"] == {"turns": [["you", ASKED]], "changes": [], "planner": "rules", "planner_cost": {}}
    assert "The first draft was approved as it was." in page


def test_two_changes_later_the_report_compares_with_the_first_draft(at_work: ThreadServices) -> None:
    """Not with the version before the last, which is all that a review compares with."""
    turn = start(request(), at_work)
    turn = answer(turn.thread, {"type": "respond", "text": LONGER}, at_work)
    edited = turn.state["yaml"].replace("min: 12", "min: 14")
    assert edited != turn.state["yaml"]
    turn = answer(turn.thread, {"type": "edit", "yaml": edited}, at_work)
    assert len(turn.payload["diff_from_previous"]) == 1
    answer(turn.thread, {"type": "approve", "digest": turn.payload["plan_digest"], "origin": "test"}, at_work)
    report, page = report_of(at_work)
    changes = report["history"]["changes"]
    assert any(line.startswith("+ ") and "filter.length" in line and "min=14" in line for line in changes)
    assert ["you", LONGER] in report["history"]["turns"]
    assert LONGER in page
    assert "From the first draft to the approved plan" in page


def test_a_run_without_a_conversation_has_none(tmp_path: Path) -> None:
    from support.project import approved_run, make_project

    result = approved_run(make_project(tmp_path))
    report = json.loads((result.folder / "report.json").read_text(encoding="utf-8"))
    assert report["history"] == {"turns": [], "changes": None, "planner": "", "planner_cost": {}}
