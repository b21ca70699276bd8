"""What is asked for and what is forbidden, each prohibition with its control: without it the step comes back."""

import pytest

from datamill.agents.rules import plan_request
from datamill.agents.rules.intents import mentions, sequence_pairs
from datamill.agents.rules.negation import prohibitions
from datamill.agents.rules.request import Request


def operators(text: str) -> tuple[str, ...]:
    return plan_request(text).operators


@pytest.mark.parametrize(
    ("forbidding", "allowing", "operator"),
    [
        ("exact dedup of a.jsonl, no fuzzy dedup", "exact dedup of a.jsonl, and fuzzy dedup", "dedup.minhash"),
        ("dedupe a.jsonl by url, don't mask the phone numbers", "dedupe a.jsonl by url, mask the phone numbers", "pii.redact"),
        ("split a.jsonl 80/20 without sampling", "split a.jsonl 80/20 after sampling 100 rows", "sample.random"),
        ("stats of a.jsonl, skip the decontamination", "stats of a.jsonl and decontamination with GSM8K", "decon.ngram"),
        ("去重 a.jsonl 按 url 列，不要脱敏", "去重 a.jsonl 按 url 列，再脱敏", "pii.redact"),
        ("tire o CPF de a.jsonl, sem deduplicar", "tire o CPF de a.jsonl e deduplique", "dedup.exact"),
        ("anonimiza a.jsonl, no filtres por idioma", "anonimiza a.jsonl y filtra por idioma, solo español", "filter.lang"),
    ],
)  # fmt: skip
def test_forbidden_steps_stay_out_and_come_back(forbidding: str, allowing: str, operator: str) -> None:
    assert operator not in operators(forbidding)
    assert operator in operators(allowing)


@pytest.mark.parametrize(
    "text",
    ["a.jsonl: no duplicates", "a.jsonl without duplicates", "a.jsonl, sem duplicatas", "a.jsonl sin duplicados"],
)
def test_no_duplicates_asks_for_deduplication(text: str) -> None:
    assert "dedup.exact" in operators(text)


@pytest.mark.parametrize(
    "text",
    [
        "fix the text of a.jsonl but don't remove duplicates",
        "conserte acentos quebrados de a.jsonl, sem remover duplicatas",
    ],
)
def test_keeping_duplicates_does_not(text: str) -> None:
    assert not {"dedup.exact", "dedup.minhash"} & set(operators(text))


@pytest.mark.parametrize(
    "text",
    [
        "mask e-mails in a.jsonl, don't remove any rows",
        "mask e-mails in a.jsonl, every row must be kept",
        "tira o CPF de a.jsonl mas não apaga nenhuma linha",
        "anonimiza los correos de a.jsonl sin borrar filas",
        "a.jsonl 脱敏，不要删除任何数据",
    ],
)
def test_rows_are_kept_when_said(text: str) -> None:
    assert "keep_all_rows" in prohibitions(Request(text))
    draft = plan_request(text)
    assert draft.operators == ("pii.redact",)
    assert draft.workflow is not None
    assert draft.workflow["steps"][0]["params"]["mode"] in {"replace", "mask"}


@pytest.mark.parametrize(
    "text",
    [
        "statistics of a.jsonl, don't touch the data",
        "先不要动数据，看看 a.jsonl 的分布",
        "estatísticas de a.jsonl, não altere nada",
    ],
)
def test_read_only_leaves_statistics_alone(text: str) -> None:
    draft = plan_request(text)
    assert draft.operators == ("report.stats",)
    assert draft.workflow is not None
    assert not draft.workflow.get("outputs")


def test_not_changing_numbers_is_not_read_only() -> None:
    assert prohibitions(Request("parafraseie as perguntas, não mude os números")) == ()


def test_no_filters_rules_filters_out() -> None:
    draft = plan_request("only exact dups of a.csv, no filters")
    assert draft.operators == ("dedup.exact",)
    assert {"filter.length", "dedup.minhash"} <= set(draft.forbidden)


def test_a_list_takes_over_the_negation() -> None:
    assert operators("stats of a.jsonl without dedup, masking or translation") == ("report.stats",)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("translate a.jsonl to english before dedup", ("rewrite.llm", "dedup")),
        ("after translation to english, sample 10 rows", ("rewrite.llm", "sample")),
        ("翻译之前先去重", ("dedup", "rewrite.llm")),
        ("去重之后再翻译", ("dedup", "rewrite.llm")),
    ],
)
def test_words_of_order(text: str, pair: tuple[str, str]) -> None:
    request = Request(text)
    assert pair in {(before, after) for before, after, _ in sequence_pairs(request, mentions(request))}


def test_words_of_sequence_order_the_steps() -> None:
    default = operators("exact dedup on a.jsonl by url, English only")
    spoken = operators("exact dedup on a.jsonl by url, then English only")
    assert default.index("filter.lang") < default.index("dedup.exact")
    assert spoken.index("dedup.exact") < spoken.index("filter.lang")


def test_contradicting_order_is_a_question() -> None:
    draft = plan_request("dedup a.jsonl first, but translate to english before dedup")
    assert draft.verdict == "clarify"
    assert "order" in {question.topic for question in draft.questions}


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("clean the QA pairs in a.jsonl by exact dedup on question", "synth.qa_from_doc"),
        ("exact dedup of dedup_paraphrase.jsonl by url", "augment.paraphrase"),
        ("drop paraphrases from a.jsonl by exact dedup on text", "augment.paraphrase"),
    ],
)
def test_nouns_ask_for_nothing(text: str, operator: str) -> None:
    draft = plan_request(text)
    assert operator not in draft.operators
    assert operator not in {missing.name for missing in draft.missing}
