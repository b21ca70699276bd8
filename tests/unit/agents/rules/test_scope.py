"""Which words belong to which step: columns, numbers, groups, shares and older sets, each with a control."""

from typing import Any

import pytest

from datamill.agents.rules import plan_request


def params(text: str, operator: str) -> dict[str, Any]:
    """Parameters of the first step with an operator, or what was wanted of it when it does not exist."""
    draft = plan_request(text)
    steps = (draft.workflow or {}).get("steps", [])
    found = next((s.get("params", {}) for s in steps if s["operator"] == operator), None)
    return found if found is not None else next(dict(m.wanted) for m in draft.missing if m.name == operator)


def test_columns_belong_to_the_step_that_names_them() -> None:
    text = "t.parquet w/ columns subject + message. scrub emails from message only, then exact dedupe on subject"
    assert params(text, "pii.redact")["columns"] == ["message"]
    assert params(text, "dedup.exact")["columns"] == ["subject"]


def test_a_key_is_not_the_text_of_other_steps() -> None:
    text = "exact-dedupe w.parquet on the title, then toss pages below 80 words"
    assert params(text, "dedup.exact")["columns"] == ["title"]
    assert params(text, "filter.length")["columns"] == ["text"]
    assert params("w.parquet, text column is called title, toss pages below 80 words", "filter.length")["columns"] == [
        "title"
    ]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("drop rows where label is missing in t.csv and cast score to float", "label"),
        ("borra de foro.csv las filas donde usuario esté vacío", "usuario"),
        ("get rid of rows of qa.csv where the reply column is blank", "reply"),
        ("data/qa.jsonl：删掉 answer 为空的", "answer"),
    ],
)
def test_empty_values_stand_in_their_column(text: str, column: str) -> None:
    assert params(text, "filter.length")["columns"] == [column]


def test_the_nearest_noun_says_what_is_empty() -> None:
    spanish = "Elimina filas con respuesta vacía y preguntas repetidas de faq.csv"
    assert params(spanish, "filter.length")["columns"] == ["output"]
    assert params(spanish, "dedup.exact")["columns"] == ["question"]


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("keep texts of s.jsonl with at least 50 and at most 100 characters", (50, 100)),
        ("rm rows with less than 3 turns or more than 30 turns in d.jsonl", (3, 30)),
        ("elimina filas con menos de 3 palabras o más de 100 en b.csv", (3, 100)),
        ("d.jsonl 里少于 2 轮、多于 20 轮的对话都不要", (2, 20)),
    ],
)
def test_two_bounds_share_a_unit(text: str, bounds: tuple[int, int]) -> None:
    found = params(text, "filter.length")
    assert (found["min"], found["max"]) == bounds


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("Combine a.jsonl (60%), b.jsonl (40%), then hold out 2 percent for validation", {"a": 0.6, "b": 0.4}),
        ("make a 60/40 mix of a.jsonl and b.jsonl", {"a": 0.6, "b": 0.4}),
        ("blend a.jsonl 75% and b.jsonl 25%", {"a": 0.75, "b": 0.25}),
    ],
)
def test_weights_stand_beside_their_files(text: str, weights: dict[str, float]) -> None:
    assert params(text, "mix.concat")["weights"] == weights


def test_shares_of_a_mixture_are_not_those_of_a_split() -> None:
    text = "Combine a.jsonl (60%), b.jsonl (40%), then hold out 2 percent for validation"
    assert params(text, "split")["ratios"] == [0.98, 0.02]


def test_groups_of_a_report_take_no_sample() -> None:
    assert plan_request("per language stats for a.jsonl").operators == ("report.stats",)
    assert plan_request("at most 5 rows per language of a.jsonl").operators == ("sample.stratified",)


def test_columns_with_underscores_make_groups() -> None:
    found = params("keep at most 2 rows per user_id in posts.jsonl", "sample.stratified")
    assert (found["by"], found["max_per_group"]) == (["user_id"], 2)


def test_an_older_set_is_compared_with_and_not_read_as_input() -> None:
    draft = plan_request("dedupe new.jsonl against old.jsonl, near duplicates 0.85")
    assert draft.workflow is not None
    assert [entry["path"] for entry in draft.workflow["inputs"].values()] == ["new.jsonl"]
    assert draft.workflow["steps"][0]["params"]["against"] == "old.jsonl"


def test_a_cosine_speaks_of_meaning() -> None:
    text = "rephrase seeds.jsonl, throw out variants closer than 0.95 cosine to the prompt"
    assert params(text, "dedup.semantic")["max_similarity"] == 0.95
    assert params("drop rows of a.jsonl closer than 0.95 jaccard", "dedup.minhash")["threshold"] == 0.95


def test_conditions_on_words_and_values() -> None:
    starts = params('drop rows of a.jsonl where the answer starts with "As an AI"', "filter.expr")
    assert starts["expr"] == 'not (starts_with(output, "As an AI"))'
    licence = params("only rows from b.jsonl whose license is MIT or Apache", "filter.expr")
    assert licence["expr"] == 'license in ["MIT", "Apache"]'


def test_renaming_stops_where_the_list_of_pairs_stops() -> None:
    text = "rename 'q' to instruction and 'a' to output in t.tsv, then save it as alpaca for llama factory"
    assert params(text, "columns.rename")["mapping"] == {"q": "instruction", "a": "output"}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a lot of rows: sample 12k of a.jsonl", 12000),
        ("give me 2k rows from a.csv", 2000),
        ("shuffle a.jsonl, first 300 rows", 300),
    ],
)
def test_rows_asked_for_in_other_words(text: str, count: int) -> None:
    assert params(text, "sample.random")["n"] == count


def test_places_in_a_file_and_shuffling_are_named_as_missing() -> None:
    assert [m.asked_for for m in plan_request("first 300 rows of a.jsonl").missing] == [
        "take rows by their place in the file"
    ]
    assert "shuffle" in {m.name for m in plan_request("dedup a.jsonl by id, then shuffle").missing}
