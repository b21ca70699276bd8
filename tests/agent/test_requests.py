"""The rules planner on whole files of requests, graded by the benchmark's own grader."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from datamill.agents.draft import Draft
from datamill.agents.rules import plan_request
from datamill.operators.registry import catalogue
from datamill.workflows.spec import Workflow

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "cases" / "nl_requests.jsonl"
HELDOUT = Path(__file__).parent / "data" / "requests_heldout.jsonl"


def load_grader() -> ModuleType:
    name = "nl_requests_grader"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / "nl_requests.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def cases(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


HELDOUT_CASES = cases(HELDOUT)


def share_right(some: list[dict[str, Any]], drafts: list[Draft]) -> float:
    grader = load_grader()
    grades = [grader.grade(case, draft) for case, draft in zip(some, drafts, strict=True)]
    return sum(grade.right for grade in grades) / len(grades)


@pytest.mark.skipif(not SHARED.is_file(), reason="the request file is not beside the checkout")
def test_request_file_is_at_least_80_percent_right() -> None:
    some = cases(SHARED)
    assert share_right(some, [plan_request(case["request"]) for case in some]) >= 0.8


def test_heldout_requests_are_at_least_80_percent_right() -> None:
    assert share_right(HELDOUT_CASES, [plan_request(case["request"]) for case in HELDOUT_CASES]) >= 0.8


@pytest.mark.parametrize("language", ["en", "zh", "pt", "es"])
def test_every_language_is_at_least_80_percent_right(language: str) -> None:
    some = [case for case in HELDOUT_CASES if case["lang"] == language]
    assert len(some) >= 10
    assert share_right(some, [plan_request(case["request"]) for case in some]) >= 0.8


def test_drafts_of_other_requests_are_graded_wrong() -> None:
    """Negative control of the grader: a plan for another request must not pass."""
    drafts = [plan_request(case["request"]) for case in HELDOUT_CASES]
    moved = drafts[41:] + drafts[:41]
    assert share_right(HELDOUT_CASES, moved) < 0.15


def test_refusing_or_asking_everything_is_graded_wrong() -> None:
    ask = plan_request("hello there")
    refuse = plan_request("load ../../secret.jsonl")
    assert (ask.verdict, refuse.verdict) == ("clarify", "refuse")
    assert share_right(HELDOUT_CASES, [ask] * len(HELDOUT_CASES)) < 0.2
    assert share_right(HELDOUT_CASES, [refuse] * len(HELDOUT_CASES)) < 0.25


@pytest.mark.parametrize("case", HELDOUT_CASES, ids=[case["id"] for case in HELDOUT_CASES])
def test_drafts_fit_the_workflow_format_and_every_operator(case: dict[str, Any]) -> None:
    draft = plan_request(case["request"])
    if draft.workflow is None:
        assert draft.verdict in {"clarify", "refuse"} or draft.missing
        return
    Workflow.model_validate(draft.workflow)
    for step in draft.workflow["steps"]:
        catalogue()[step["operator"]].params.model_validate(step.get("params", {}))
    assert not set(draft.operators) & set(draft.forbidden)


def test_no_text_of_a_request_file_is_in_the_code() -> None:
    """Requests are understood by kind: no sentence of a file may stand in the planner."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "agents" / "rules").glob("*.py"))
    for case in [*HELDOUT_CASES, *(cases(SHARED) if SHARED.is_file() else [])]:
        assert case["id"] not in code
        words = case["request"].split()
        for start in range(len(words) - 7):
            assert " ".join(words[start : start + 8]) not in code
