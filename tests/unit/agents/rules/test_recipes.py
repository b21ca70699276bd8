"""Recipes: they load, name known operators, fire on their goals in four languages and yield to the request."""

from pathlib import Path

import pytest

from datamill.agents.inspection import ColumnFacts, InputFacts, Inspection
from datamill.agents.rules import plan_request
from datamill.agents.rules.capabilities import CAPABILITIES
from datamill.agents.rules.recipes import recipes
from datamill.operators.registry import catalogue
from datamill.workflows.compile import CompileOptions, compile_text
from datamill.workflows.yaml_file import dump

NAMES = {recipe.name for recipe in recipes()}

MATH = Inspection(
    inputs=(
        InputFacts(
            path="m.jsonl",
            rows=1000,
            columns=(
                ColumnFacts(name="question", role="question", mean_chars=150),
                ColumnFacts(name="answer", role="answer", mean_chars=180),
            ),
        ),
    ),
    evaluation_sets={"m_eval": "m_eval.jsonl"},
)


def test_there_are_ten_recipes_with_known_operators() -> None:
    assert len(NAMES) == 10
    for recipe in recipes():
        assert recipe.steps
        for step in recipe.steps:
            assert step.operator in CAPABILITIES
            assert step.operator in catalogue()


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("build a math reasoning SFT set", {"math.verify", "dedup.minhash", "decon.ngram", "format.chat"}),
        ("monte um conjunto de matemática para SFT", {"math.verify", "format.chat"}),
        ("crea un conjunto de datos de matemáticas", {"math.verify", "format.chat"}),
        ("构建数学推理数据集", {"math.verify", "format.chat"}),
    ],
)
def test_the_math_recipe_in_four_languages(text: str, operators: set[str]) -> None:
    draft = plan_request(text, MATH)
    assert draft.verdict == "plan"
    assert operators <= set(draft.operators)


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("make a code SFT dataset from a.jsonl", {"dedup.minhash", "format.chat"}),
        ("clean the web crawl in a.jsonl", {"filter.gopher_quality", "dedup.minhash"}),
        ("清洗网页语料 a.jsonl", {"filter.gopher_quality", "dedup.minhash"}),
        ("limpia el corpus web de a.jsonl", {"filter.gopher_quality", "dedup.exact"}),
        ("clean the instruction data in a.jsonl", {"filter.refusal", "dedup.exact"}),
        ("prepare preference data from a.jsonl", {"format.preference"}),
        ("build a multilingual corpus from a.jsonl", {"lang.detect", "report.stats"}),
        ("make a.jsonl GDPR ready", {"pii.redact", "report.stats"}),
        ("full deduplication of a.jsonl", {"dedup.exact", "dedup.minhash"}),
        ("contamination report of a.jsonl against GSM8K", {"decon.ngram", "report.stats"}),
        ("a full report of a.jsonl", {"report.stats"}),
    ],
)
def test_each_recipe_fires_on_its_goal(text: str, operators: set[str]) -> None:
    assert operators <= set(plan_request(text).operators)


def test_the_request_wins_over_the_recipe() -> None:
    draft = plan_request("build a math SFT set, near dedup at 0.9, no decontamination", MATH)
    assert draft.workflow is not None
    near = next(s for s in draft.workflow["steps"] if s["operator"] == "dedup.minhash")
    assert near["params"]["threshold"] == 0.9
    assert "decon.ngram" not in draft.operators


def test_explicit_lists_do_not_wake_a_recipe() -> None:
    draft = plan_request("from web.jsonl: exact dedup by url, mask e-mails, random 100 rows")
    assert set(draft.operators) == {"dedup.exact", "pii.redact", "sample.random"}


def test_steps_without_their_column_are_left_out() -> None:
    facts = Inspection(inputs=(InputFacts(path="m.jsonl", columns=(ColumnFacts(name="text", role="text"),)),))
    draft = plan_request("build a math set", facts)
    assert "math.verify" not in draft.operators


def test_the_main_job_compiles(tmp_path: Path) -> None:
    row = '{"question": "What is 1 + 1 for a child who counts?", "answer": "<<1+1=2>>2\\n#### 2"}\n'
    for name in ("m.jsonl", "m_eval.jsonl"):
        (tmp_path / name).write_text(row, encoding="utf-8")
    draft = plan_request("build a math reasoning SFT set and train with LESS", MATH)
    assert draft.verdict == "plan"
    assert not draft.missing
    assert draft.workflow is not None
    plan = compile_text(dump(draft.workflow), CompileOptions(tmp_path))
    assert {"math.verify", "decon.ngram", "split"} <= {step.operator for step in plan.steps}
