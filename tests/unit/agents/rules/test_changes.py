"""Changes to a draft under review, and answers to questions."""

from typing import Any

import pytest

from datamill.agents.draft import INPUT_PLACEHOLDER, Draft
from datamill.agents.inspection import ColumnFacts, InputFacts, Inspection
from datamill.agents.rules import plan_request
from datamill.operators.registry import catalogue
from datamill.workflows.spec import Workflow

BASE = "English only in data/web.jsonl, no near-duplicates, drop low quality, 20k rows"
FACTS = Inspection(
    inputs=(
        InputFacts(
            path="data/web.jsonl",
            rows=48_000,
            columns=(ColumnFacts(name="text", role="text", mean_chars=900), ColumnFacts(name="source", role="source")),
        ),
    )
)


def base(text: str = BASE) -> Draft:
    return plan_request(text, FACTS)


def change(text: str, previous: Draft | None = None) -> Draft:
    draft = plan_request(text, FACTS, previous or base())
    assert draft.workflow is not None
    Workflow.model_validate(draft.workflow)
    known = set(draft.workflow["inputs"])
    for step in draft.workflow["steps"]:
        assert set(step["needs"]) <= known, "a step needs what comes after it or is gone"
        known.add(step["id"])
        catalogue()[step["operator"]].params.model_validate(step.get("params", {}))
    assert {output["from"] for output in draft.workflow["outputs"].values()} <= known
    return draft


def params(draft: Draft, operator: str) -> dict[str, Any]:
    assert draft.workflow is not None
    found: dict[str, Any] = next(s for s in draft.workflow["steps"] if s["operator"] == operator).get("params", {})
    return found


def test_balanced_sources_swap_the_sample_and_keep_its_size() -> None:
    changed = change("keep the sources balanced, at least 50 words")
    assert "sample.random" not in changed.operators
    sample = params(changed, "sample.stratified")
    assert (sample["by"], sample["n"]) == (["source"], 20_000)
    quality_words = params(changed, "filter.gopher_quality").get("min_words")
    assert quality_words == 50 or params(changed, "filter.length")["min"] == 50


@pytest.mark.parametrize(
    ("text", "operator", "name", "value"),
    [
        ("threshold 0.9", "dedup.minhash", "threshold", 0.9),
        ("make the jaccard 0.7", "dedup.minhash", "threshold", 0.7),
        ("only 5000 rows", "sample.random", "n", 5000),
        ("English and German only", "filter.lang", "allow", ["en", "de"]),
        ("keep the longest duplicate", "dedup.minhash", "keep", "longest"),
    ],
)
def test_values_are_set_and_the_rest_stays(text: str, operator: str, name: str, value: Any) -> None:
    before = base()
    changed = change(text, before)
    if name == "keep":
        changed = change("near dedup, keep the longest", before)
    assert params(changed, operator)[name] == value
    assert changed.operators == before.operators


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("without the near dedup", "dedup.minhash"),
        ("remove the near-dedup step", "dedup.minhash"),
        ("no sampling", "sample.random"),
        ("no filtres por idioma", "filter.lang"),
        ("不要去重", "dedup.minhash"),
    ],
)
def test_steps_go_out_and_come_back(text: str, gone: str) -> None:
    before = base()
    assert gone in before.operators
    changed = change(text, before)
    assert gone not in changed.operators
    again = {"dedup.minhash": "near dedup it", "sample.random": "random 100 rows", "filter.lang": "English only"}[gone]
    back = change(again, changed)
    assert gone in back.operators
    assert gone not in back.forbidden


def test_a_new_step_goes_in_at_its_phase() -> None:
    changed = change("also mask e-mails")
    order = changed.operators
    assert order.index("filter.lang") < order.index("pii.redact") < order.index("dedup.minhash")


def test_output_seed_and_format_change() -> None:
    assert change("seed 99").workflow["seed"] == 99  # type: ignore[index]  # change() asserts a workflow
    moved = change("write it to out/final.parquet").workflow
    assert moved is not None
    assert moved["outputs"]["clean"]["path"] == "out/final.parquet"
    assert moved["outputs"]["clean"]["format"] == "parquet"
    csv = change("save it as csv").workflow
    assert csv is not None
    assert csv["outputs"]["clean"]["path"].endswith(".csv")


def test_training_changes() -> None:
    before = plan_request("pretrain Qwen2.5-0.5B with LoRA on data/web.jsonl", FACTS)
    changed = change("3 epochs, learning rate 2e-5, use SmolLM2-135M", before).workflow
    assert changed is not None
    factory = changed["train"]["llamafactory"]
    assert (factory["num_train_epochs"], factory["learning_rate"]) == (3.0, 2e-5)
    assert factory["model_name_or_path"] == "SmolLM2-135M"
    assert "train" not in (change("don't train", before).workflow or {})


def test_a_change_that_says_nothing_says_so() -> None:
    before = base()
    changed = change("hmm", before)
    assert changed.workflow == before.workflow
    assert any("changed nothing" in note for note in changed.assumptions)


def test_a_change_passes_the_safety_rules() -> None:
    refused = plan_request("read ../../other.jsonl instead", FACTS, base())
    assert refused.verdict == "refuse"
    assert refused.workflow == base().workflow


def test_a_whole_new_request_starts_afresh() -> None:
    fresh = plan_request("exact dedup of other.csv by url", None, base())
    assert fresh.operators == ("dedup.exact",)


def test_the_earlier_draft_is_left_alone() -> None:
    before = base()
    text = before.model_dump_json()
    change("threshold 0.9, without the language filter", before)
    assert before.model_dump_json() == text


@pytest.mark.parametrize(
    ("request_text", "answer", "check"),
    [
        ("exact dedup by url", "data/a.jsonl", {"path": "data/a.jsonl"}),
        ("near dedup of a.jsonl with threshold 8", "0.8", {"threshold": 0.8}),
        ("near dedup of a.jsonl with threshold 8", "yes", {"threshold": 0.8}),
        ("near dedup of a.jsonl with threshold 8", "0,75", {"threshold": 0.75}),
        ("用 MinHash 去重 a.jsonl，阈值 85", "好的", {"threshold": 0.85}),
    ],
)
def test_answers_settle_questions(request_text: str, answer: str, check: dict[str, Any]) -> None:
    asked = plan_request(request_text)
    assert asked.verdict == "clarify"
    settled = plan_request(answer, None, asked)
    assert settled.verdict == "plan", settled.questions
    assert settled.workflow is not None
    if "path" in check:
        assert {entry["path"] for entry in settled.workflow["inputs"].values()} == {check["path"]}
    else:
        assert params(settled, "dedup.minhash")["threshold"] == check["threshold"]


def test_marking_or_removing_answers_a_contradiction() -> None:
    asked = plan_request("keep english only in a.jsonl but don't remove any rows")
    assert asked.question is not None
    assert asked.question.topic == "contradiction"
    marked = plan_request("just mark them", None, asked)
    assert (marked.verdict, marked.operators) == ("plan", ("lang.detect",))
    removed = plan_request("rows may be removed", None, asked)
    assert (removed.verdict, removed.operators) == ("plan", ("lang.detect", "filter.lang"))


def test_one_answer_may_leave_another_question() -> None:
    asked = plan_request("fine-tune with LoRA")
    first = (
        plan_request("a.jsonl", None, asked)
        if asked.question and asked.question.topic == "input"
        else plan_request("Qwen2.5-0.5B", None, asked)
    )
    assert first.verdict == "clarify"
    second = plan_request("a.jsonl, Qwen2.5-0.5B", None, first)
    assert second.verdict == "plan"


def test_an_answer_may_name_another_model() -> None:
    asked = plan_request("fine-tune Qwen2.5-0.5B with LoRA")
    settled = plan_request("a.jsonl, and rather SmolLM2-135M", None, asked)
    assert settled.workflow is not None
    assert settled.workflow["train"]["llamafactory"]["model_name_or_path"] == "SmolLM2-135M"


def test_an_empty_or_foreign_answer_asks_again() -> None:
    asked = plan_request("exact dedup by url")
    for answer in ("", "  ", "blue"):
        again = plan_request(answer, None, asked)
        assert again.verdict == "clarify"
        assert again.workflow is not None
        assert {entry["path"] for entry in again.workflow["inputs"].values()} == {INPUT_PLACEHOLDER}


def test_the_engine_answer_is_used() -> None:
    asked = plan_request("use the usual settings for a 30B token web corpus in data/web.jsonl", FACTS)
    assert asked.question is not None
    assert asked.question.topic == "languages"
    second = plan_request("English", FACTS, asked)
    assert second.question is not None
    assert second.question.topic == "engine"
    third = plan_request("ray please", FACTS, second)
    assert third.workflow is not None
    assert third.workflow["run"]["executor"] == "ray"


def test_an_answer_with_a_secret_is_declined() -> None:
    asked = plan_request("exact dedup by url")
    refused = plan_request("data/a.jsonl, and the key is sk-abcdef123456", None, asked)
    assert refused.verdict == "refuse"
    assert "sk-abcdef" not in refused.model_dump_json()
