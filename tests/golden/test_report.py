"""The report of the small project against its golden page, its schema, and itself.

`UPDATE_GOLDEN=1 pytest tests/golden/test_report.py` writes the golden page anew; look at the difference before
committing it.
"""

import json
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.project import approved_run, compiled, make_project
from support.report_data import full_report, same_everywhere

from datamill.workflows.ledger import Books
from datamill.workflows.lookup import RunData
from datamill.workflows.report.build import build_report
from datamill.workflows.report.page import render
from datamill.workflows.run_record import RunRecord, find_run

GOLDEN = Path(__file__).parent / "report" / "small.html"
SCHEMA = json.loads((resources.files("datamill.workflows.report") / "report.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_project(tmp_path_factory.mktemp("report"))
    approved_run(folder)
    return folder


@pytest.fixture(scope="module")
def run(project: Path) -> RunRecord:
    return find_run(project, "@last")


@pytest.fixture(scope="module")
def report(run: RunRecord) -> dict[str, Any]:
    return dict(json.loads((run.folder / "report.json").read_text(encoding="utf-8")))


def problems(report: dict[str, Any]) -> list[str]:
    return [f"{list(e.absolute_path)}: {e.message}" for e in Draft202012Validator(SCHEMA).iter_errors(report)]


def test_the_page_is_the_golden_one(tmp_path: Path) -> None:
    page = render(full_report(tmp_path))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(page, encoding="utf-8")
    assert page == GOLDEN.read_text(encoding="utf-8")


def test_a_second_run_elsewhere_gives_the_same_report(tmp_path: Path, project: Path, report: dict[str, Any]) -> None:
    other = make_project(tmp_path)
    plan = compiled(other)
    approved_run(other, plan)
    again = build_report(other, find_run(other, "@last"), plan)
    assert same_everywhere(json.loads(json.dumps(again))) == same_everywhere(report)


def test_the_schema_is_a_schema_and_the_report_follows_it(report: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert problems(report) == []


def test_the_schema_refuses_what_is_wrong(report: dict[str, Any]) -> None:
    assert problems({**report, "surprise": 1})
    assert problems({**report, "schema": 2})
    assert problems({**report, "rows_in": -1})
    assert problems({key: value for key, value in report.items() if key != "drops"})
    step = {**report["steps"][0], "in": "many"}
    assert problems({**report, "steps": [step]})


def test_the_full_report_follows_the_schema(tmp_path: Path) -> None:
    assert problems(json.loads(json.dumps(full_report(tmp_path)))) == []


def test_the_page_comes_from_report_json_alone(run: RunRecord, report: dict[str, Any]) -> None:
    assert render(report) == (run.folder / "report.html").read_text(encoding="utf-8")


def test_numbers_of_the_report_are_those_of_the_run(run: RunRecord, report: dict[str, Any]) -> None:
    books = {name: Books.from_flat(counts) for name, counts in run.state()["steps"].items()}
    assert {s["id"]: (s["in"], s["out"], s["left"]) for s in report["steps"]} == {
        name: (b.rows_in, b.rows_out, sum(b.gone.values())) for name, b in books.items()
    }
    assert report["rows_in"] == 101
    by_reason: dict[tuple[str, str], int] = {}
    for group in report["drops"]:
        by_reason[group["step"], f"{group['fate']}:{group['reason']}"] = group["count"]
    assert by_reason == {(name, why): n for name, b in books.items() for why, n in b.reasons.items()}


def test_examples_are_rows_that_left(project: Path, run: RunRecord, report: dict[str, Any]) -> None:
    data = RunData(project, run)
    for group in report["drops"]:
        ids = set(data.fates(group["step"])["id"].to_pylist())
        assert 1 <= len(group["examples"]) <= 5
        assert {example["id"] for example in group["examples"]} <= ids
        assert group["share"] == pytest.approx(group["count"] / run.state()["steps"][group["step"]]["in"], abs=1e-6)


def test_steps_of_a_chain_share_its_time(report: dict[str, Any]) -> None:
    """Together they take no longer than the run, so no second is counted twice."""
    assert sum(step["seconds"] for step in report["steps"]) <= report["run"]["seconds"] + 0.01


def test_only_parameters_that_were_chosen_are_shown(report: dict[str, Any]) -> None:
    params = {step["id"]: step["params"] for step in report["steps"]}
    assert params["size"] == {"min": 12}, "columns: [text] and unit: chars are defaults"
    assert params["pick"] == {"n": 40}


def test_every_text_of_the_page_is_there(tmp_path: Path) -> None:
    page = render(full_report(tmp_path))
    for words in (
        "datamill run --approve 000000000000", "approved 2026-01-02 03:04 UTC", "keep only 40 rows", "+ pick (sample.random)",
        "invalid json", "exact duplicate", "too short", "5 min 12 s", "Dear sea", "$0.0021", "0.25", "card of clean",
    ):  # fmt: skip
        assert words in page, words


def test_books_that_do_not_balance_are_shown(tmp_path: Path) -> None:
    report = full_report(tmp_path)
    assert "DO NOT BALANCE" not in render(report)
    report["steps"][0]["balance"] = -1
    assert "DO NOT BALANCE" in render(report)


def test_an_untouched_first_draft_says_so(tmp_path: Path) -> None:
    report = full_report(tmp_path)
    report["history"] = {**report["history"], "changes": []}
    assert "The first draft was approved as it was." in render(report)
    report["history"] = {"turns": [], "changes": None, "planner": "", "planner_cost": {}}
    assert "first draft" not in render(report)


def test_the_page_asks_for_nothing(tmp_path: Path) -> None:
    page = render(full_report(tmp_path))
    assert not re.findall(r"<(?:script|iframe|object|embed|form|link(?! rel=\"icon\" href=\"data:,\"))\b", page)
    assert not re.findall(r"(?:src|href|action)\s*=\s*[\"']?https?:", page)
    assert "url(" not in page
