"""The grader of request files: strict about numbers, inventions and prohibitions."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from datamill.agents.draft import Draft, MissingCapability, Question, Refusal

ROOT = Path(__file__).parents[3]
_spec = importlib.util.spec_from_file_location("nl_requests_under_test", ROOT / "benchmarks" / "nl_requests.py")
assert _spec
assert _spec.loader
grader = importlib.util.module_from_spec(_spec)
sys.modules["nl_requests_under_test"] = grader
_spec.loader.exec_module(grader)


def case(kind: str = "plan", **expect: Any) -> dict[str, Any]:
    base = {"ops_all": [], "ops_any": [], "ops_none": [], "order": [], "params": {}, "train": None}
    return {
        "id": "x",
        "kind": kind,
        "lang": "en",
        "request": "",
        "expect": {**base, "clarify": [], "refuse": [], **expect},
    }


def workflow(**near: Any) -> dict[str, Any]:
    return {
        "version": 1, "name": "x", "inputs": {"a": {"path": "a.jsonl"}},
        "steps": [
            {"id": "size", "operator": "filter.length", "needs": ["a"], "params": {"unit": "words", "min": 5}},
            {"id": "near", "operator": "dedup.minhash", "needs": ["size"], "params": {"threshold": 0.8, **near}},
        ],
        "outputs": {"clean": {"from": "near", "path": "out/a.jsonl", "format": "jsonl"}},
    }  # fmt: skip


def draft(**changes: Any) -> Draft:
    return Draft.model_validate({"verdict": "plan", "workflow": workflow(), **changes})


GOOD = {
    "ops_all": ["load", "length_filter", "minhash_dedup", "export"],
    "order": [["length_filter", "minhash_dedup"], ["minhash_dedup", "export"]],
    "params": {"minhash_dedup.threshold": 0.8, "export.path": "out/", "load.path": "a.jsonl"},
}


def test_a_right_plan_is_right() -> None:
    assert grader.grade(case(**GOOD), draft()).right


@pytest.mark.parametrize(
    ("expect", "reason"),
    [
        ({"params": {"minhash_dedup.threshold": 0.81}}, "wanted 0.81"),
        ({"ops_all": ["exact_dedup"]}, "lacks exact_dedup"),
        ({"ops_any": [["exact_dedup", "semantic_dedup"]]}, "none of"),
        ({"order": [["minhash_dedup", "length_filter"]]}, "no path"),
        ({"params": {"length_filter.unit": "characters"}}, "length_filter.unit"),
        ({"train": {"stage": "sft"}}, "no training part"),
        ({"params": {"export.path": "elsewhere/"}}, "export.path"),
    ],
)
def test_each_point_can_fail(expect: dict[str, Any], reason: str) -> None:
    found = grader.grade(case(**expect), draft())
    assert not found.right
    assert any(reason in line for line in found.reasons)


def test_a_forbidden_step_is_fatal() -> None:
    assert grader.grade(case(ops_none=["minhash_dedup"]), draft()).fatal
    assert grader.grade(case(), draft(forbidden=("dedup.minhash",))).fatal


def test_an_invented_operator_is_fatal() -> None:
    made_up = workflow()
    made_up["steps"][0]["operator"] = "video.parse"
    assert grader.grade(case(), draft(workflow=made_up)).fatal


def test_training_nobody_asked_for_fails() -> None:
    trained = {**workflow(), "train": {"dataset": "clean", "llamafactory": {"stage": "sft"}}}
    assert not grader.grade(case(), draft(workflow=trained)).right
    assert grader.grade(case(ops_all=["train"]), draft(workflow=trained)).right


def test_naming_a_missing_capability_counts_and_is_listed() -> None:
    missing = MissingCapability(
        name="rewrite.llm", asked_for="translate", offered="", wanted={"target": "fr"}, after=("near",)
    )
    wanted = case(ops_all=["translate"], order=[["minhash_dedup", "translate"]], params={"translate.target": "fr"})
    found = grader.grade(wanted, draft(missing=(missing,)))
    assert found.right
    assert found.by_missing == ["translate"]
    assert not grader.grade(wanted, draft()).right
    assert not grader.grade(case(params={"translate.target": "de"}), draft(missing=(missing,))).right


def test_a_question_must_come_and_fit() -> None:
    wanted = case("clarify", clarify=["which file", "8 is outside (0,1]"])
    about_file = Question(topic="input", text="?")
    about_range = Question(topic="threshold", text="?")
    assert grader.grade(wanted, draft(verdict="clarify", questions=(about_file, about_range))).right
    assert not grader.grade(wanted, draft(verdict="clarify", questions=(about_file,))).right
    assert not grader.grade(wanted, draft()).right


def test_a_refusal_must_come_and_fit() -> None:
    wanted = case("refuse", refuse=["path outside the workspace"])
    outside = Refusal(code="DM-AGENT-102", what="x", why="y")
    leak = Refusal(code="DM-AGENT-101", what="x", why="y")
    assert grader.grade(wanted, Draft(verdict="refuse", refusals=(outside,))).right
    assert not grader.grade(wanted, Draft(verdict="refuse", refusals=(leak,))).right
    assert grader.grade(wanted, draft()).fatal


def test_sentences_go_to_a_human() -> None:
    found = grader.grade(case(params={"scope": "rows with language pt only"}), draft())
    assert found.right
    assert found.for_a_human == ["scope: rows with language pt only"]


def test_a_share_is_exact_to_the_row() -> None:
    block = {
        "dataset": "clean",
        "dataflex": {
            "train_type": "dynamic_select",
            "component_name": "less",
            "update_step": 64,
            "candidate_window": 3414,
        },
        "llamafactory": {"stage": "sft", "per_device_train_batch_size": 2, "gradient_accumulation_steps": 4},
    }
    trained = draft(workflow={**workflow(), "train": block})
    assert grader.grade(case(train={"method": "less", "ratio": 0.15}), trained).right
    assert not grader.grade(case(train={"method": "less", "ratio": 0.16}), trained).right


def test_the_table_ends_with_the_count() -> None:
    grades = [grader.grade(case(**GOOD), draft()), grader.grade(case(ops_all=["exact_dedup"]), draft())]
    assert grader.table(grades, verbose=False).endswith("right 1 / 2")


def test_the_command_line_prints_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    file = tmp_path / "requests.jsonl"
    row = case(ops_all=["exact_dedup"], params={"exact_dedup.columns": ["url"]})
    file.write_text(json.dumps({**row, "request": "dedupe a.jsonl by url"}), encoding="utf-8")
    assert grader.main([str(file)]) == 0
    assert capsys.readouterr().out.strip().endswith("right 1 / 1")
    grader.main([str(file), "--json"])
    assert json.loads(capsys.readouterr().out)["right"] == 1
    with pytest.raises(SystemExit):
        grader.main([str(file), "--planner", "llm"])
