"""Exact parameters from words: thresholds, keys, bounds, languages, sizes, shares, conditions, formats, paths."""

from typing import Any

import pytest

from datamill.agents.draft import Draft
from datamill.agents.inspection import ColumnFacts, InputFacts, Inspection
from datamill.agents.rules import plan_request


def params(text: str, operator: str) -> dict[str, Any]:
    draft = plan_request(text)
    assert draft.workflow is not None
    found = [step for step in draft.workflow["steps"] if step["operator"] == operator]
    assert found, draft.operators
    result: dict[str, Any] = found[0].get("params", {})
    return result


@pytest.mark.parametrize(
    ("text", "operator", "expected"),
    [
        ("near dedup of a.jsonl at jaccard 0.85, keep the first", "dedup.minhash", {"threshold": 0.85, "keep": "first"}),
        ("fuzzy dedup a.jsonl, 90% similar, keep the longest", "dedup.minhash", {"threshold": 0.9, "keep": "longest"}),
        ("MinHash 去重 a.jsonl，阈值 0.7，按字符 4-gram", "dedup.minhash", {"threshold": 0.7, "ngram": 4, "unit": "chars"}),
        ("near dedup a.jsonl with 20 bands of 5 rows", "dedup.minhash", {"bands": 20, "rows": 5}),
        ("dedupe a.csv by title and author, case-insensitive", "dedup.exact", {"columns": ["title", "author"], "casefold": True}),
        ("exact dups of a.csv, keep the highest rating", "dedup.exact", {"keep": "best:rating"}),
        ("drop texts under 40 words from a.jsonl", "filter.length", {"unit": "words", "min": 40}),
        ("keep texts of a.jsonl with fewer than 40 words", "filter.length", {"unit": "words", "max": 40}),
        ("drop anything longer than 300 characters in a.jsonl", "filter.length", {"unit": "chars", "max": 300}),
        ("a.jsonl: between 50 and 2000 words", "filter.length", {"min": 50, "max": 2000}),
        ("删掉 a.jsonl 少于3轮的对话", "filter.length", {"unit": "turns", "min": 3}),
        ("fique só com português e espanhol em a.jsonl", "filter.lang", {"allow": ["pt", "es"]}),
        ("drop everything in a.jsonl that is not English or German", "filter.lang", {"allow": ["en", "de"]}),
        ("English only in a.jsonl, confidence above 0.8", "filter.lang", {"allow": ["en"], "min_score": 0.8}),
        ("a.jsonl: remove the French rows", "filter.expr", {"expr": 'not (lang in ["fr"])'}),
        ("mask e-mails and IPs in column body of a.csv", "pii.redact", {"columns": ["body"], "entities": ["email", "ip"], "mode": "mask"}),
        ("delete rows of a.jsonl containing phone numbers", "pii.redact", {"entities": ["phone"], "mode": "drop"}),
        ("take 5,000 random rows of a.jsonl, seed 9", "sample.random", {"n": 5000, "seed": 9}),
        ("random 10% of a.jsonl", "sample.random", {"fraction": 0.1}),
        ("a.jsonl: at most 200 per source", "sample.stratified", {"by": ["source"], "max_per_group": 200}),
        ("split a.jsonl 80/10/10", "split", {"ratios": [0.8, 0.1, 0.1]}),
        ("split a.jsonl, 10% for test", "split", {"ratios": [0.9, 0.1], "names": ["train", "test"]}),
        ("keep rows of a.csv with rating >= 4 and kind == \"x\"", "filter.expr", {"expr": 'rating >= 4 and kind == "x"'}),
        ("drop rows of a.csv where score is below 0.5", "filter.expr", {"expr": "not (score < 0.5)"}),
        ("top 10% of a.jsonl by quality", "filter.topk", {"column": "quality", "fraction": 0.1}),
        ("the longest 50 texts of a.jsonl", "filter.topk", {"column": "length", "n": 50}),
        ("decontaminate a.jsonl against GSM8K test with 10-grams", "decon.ngram", {"against": ["gsm8k:test"], "n": 10}),
        ("flag rows of a.jsonl that leak from mmlu", "decon.ngram", {"against": ["mmlu:test"], "action": "tag"}),
        ("verify the answers in a.jsonl, prediction is in guess, gold is in truth", "math.verify", {"prediction": "guess", "gold": "truth"}),
        ("rename question to prompt in a.csv", "columns.rename", {"mapping": {"question": "prompt"}}),
        ("drop the columns id and meta of a.csv", "columns.select", {"drop": ["id", "meta"]}),
        ("join the title and body columns of a.csv into text", "columns.map", {"column": "text", "template": "{title}\n{body}"}),
        ("convert a.jsonl to sharegpt", "format.chat", {"style": "sharegpt"}),
        ("paraphrase each question in a.jsonl 3 times, max 20 words", "augment.paraphrase", {"n": 3, "max_words": 20}),
        ("mix 70% a and 30% b", "mix.concat", {"weights": {"a": 0.7, "b": 0.3}}),
    ],
)  # fmt: skip
def test_parameters_are_exact(text: str, operator: str, expected: dict[str, Any]) -> None:
    found = params(text, operator)
    assert {name: found.get(name) for name in expected} == expected


def test_seeds_of_the_request_are_the_seed_of_the_workflow() -> None:
    draft = plan_request("random 5% of a.jsonl, semilla 7")
    assert draft.workflow is not None
    assert draft.workflow["seed"] == 7


@pytest.mark.parametrize(
    ("text", "path", "kind"),
    [
        ("exact dedup a.jsonl into out/b.parquet", "out/b.parquet", "parquet"),
        ("exact dedup a.jsonl, write csv to results/", "results/a.csv", "csv"),
        ("精确去重 a.jsonl，输出到 out/b.jsonl", "out/b.jsonl", "jsonl"),
        ("deduplicação exata de a.jsonl, salve em saida/b.csv", "saida/b.csv", "csv"),
        ("export a.jsonl as parquet after exact dedup", "out/a.parquet", "parquet"),
    ],
)
def test_outputs(text: str, path: str, kind: str) -> None:
    draft = plan_request(text)
    assert draft.workflow is not None
    output = draft.workflow["outputs"]["clean"]
    assert (output["path"], output["format"]) == (path, kind)


def test_an_input_is_never_the_output() -> None:
    draft = plan_request("exact dedup out/a.jsonl and data/b.jsonl into data/b.jsonl")
    assert draft.workflow is not None
    inputs = {entry["path"] for entry in draft.workflow["inputs"].values()}
    assert not inputs & {output["path"] for output in draft.workflow["outputs"].values()}


def test_reader_options_of_a_csv_file() -> None:
    draft = plan_request("exact dedup a.csv, semicolons and latin-1")
    assert draft.workflow is not None
    assert draft.workflow["inputs"]["a"]["options"] == {"delimiter": ";", "encoding": "latin-1"}


FACTS = Inspection(
    inputs=(
        InputFacts(
            path="data/m.jsonl",
            rows=1000,
            columns=(
                ColumnFacts(name="prompt_text", role="instruction", mean_chars=90),
                ColumnFacts(name="reply", role="output", mean_chars=400),
                ColumnFacts(name="origin", role="source", mean_chars=5),
            ),
        ),
    ),
    evaluation_sets={"m_eval": "data/m_eval.jsonl", "m_dev": "data/m_dev.jsonl"},
)


def steps_of(draft: Draft) -> dict[str, dict[str, Any]]:
    assert draft.workflow is not None
    return {step["operator"]: step.get("params", {}) for step in draft.workflow["steps"]}


def test_columns_come_from_the_inspected_file() -> None:
    steps = steps_of(plan_request("drop refusals and answers under 5 words, balance by source, 100 rows", FACTS))
    assert steps["filter.refusal"]["columns"] == ["reply"]
    assert steps["filter.length"]["columns"] == ["reply"]
    assert steps["sample.stratified"]["by"] == ["origin"]


def test_attached_evaluation_sets_are_used_by_name() -> None:
    draft = plan_request("decontaminate it and train tiny with LESS", FACTS)
    assert draft.verdict == "plan"
    steps = steps_of(draft)
    assert steps["decon.ngram"]["against"] == ["data/m_eval.jsonl"]
    assert draft.workflow is not None
    assert "data/m_dev.jsonl" in {entry["path"] for entry in draft.workflow["inputs"].values()}
    assert draft.workflow["train"]["target_dataset"] in draft.workflow["outputs"]


def test_a_name_finds_the_attached_file() -> None:
    facts = Inspection(inputs=(InputFacts(path="data/wiki_demo.jsonl"),))
    draft = plan_request("exact dedup of wiki_demo", facts)
    assert draft.workflow is not None
    assert draft.workflow["inputs"]["wiki_demo"]["path"] == "data/wiki_demo.jsonl"
    assert draft.verdict == "plan"
    assert "input" in {question.topic for question in plan_request("exact dedup of wiki_demo").questions}


def test_values_an_operator_lacks_are_named() -> None:
    draft = plan_request("mask names and e-mails in a.jsonl")
    assert "pii.redact" in draft.operators
    assert any(m.name == "pii.redact" and m.wanted == {"entities": ["names"]} for m in draft.missing)
