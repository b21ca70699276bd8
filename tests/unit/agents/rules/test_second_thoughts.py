"""Second thoughts and slips: the later value holds, and a request without either is left alone."""

import pytest

from datamill.agents.rules import plan_request
from datamill.agents.rules.corrections import corrected
from datamill.agents.rules.spelling import spelled

PLAIN = (
    "drop rows under 10 words but no more than 500 words",
    "keep English and German, not shorter than 20 words",
    "dedup a.jsonl at 0.9 and split 90/10 with seed 3",
    "no, 20 rows are too few",
    "tire as linhas com menos de 5 palavras, mas no máximo 200",
    "阈值 0.9，种子 3，抽 20 条",
)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("near dedup at 0.9, no wait, 0.7, then split", "near dedup at 0.7, then split"),
        ("sample 10k rows, actually make that 25k", "sample 25k rows"),
        ("sample 500 rows (sorry, 800), seed 3", "sample 800 rows, seed 3"),
        ("translate to Spanish, no wait, Portuguese please", "translate to Portuguese please"),
        ("clean a.jsonl, sorry, b.jsonl", "clean b.jsonl"),
        ("split 90/10, no wait, 80/20", "split 80/20"),
        ("dedup limiar 0,9, aliás, 0,8", "dedup limiar 0,8"),
        ("umbral 0,9, no, mejor 0,85", "umbral 0,85"),
        ("阈值 0.9，不对，0.8，然后", "阈值 0.8，然后"),
        ("学习率 1e-4，改成 5e-5", "学习率 5e-5"),
        ("threshold 0.7, not 0.9", "threshold 0.7"),
        ("not 0.9 but 0.7 jaccard", "0.7 jaccard"),
        (
            "exact dups by url in p.csv, no wait, by url AND title together",
            "exact dups by url AND title in p.csv together",
        ),
    ],
)
def test_the_later_value_takes_the_place_of_the_earlier_one(said: str, meant: str) -> None:
    assert corrected(said) == meant
    assert corrected(meant) == meant


@pytest.mark.parametrize("text", PLAIN)
def test_nothing_is_corrected_without_a_second_thought(text: str) -> None:
    assert corrected(text) == text


def test_a_correction_needs_a_value_of_the_same_kind_before_it() -> None:
    assert corrected("keep 20 words, sorry, a.jsonl") == "keep 20 words, sorry, a.jsonl"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("remvoe duplicte rows", "remove duplicate rows"),
        ("filter teh langauge", "filter the language"),
        ("threshhold 0.8", "threshold 0.8"),
        ("elimna las filas repetdas", "elimina las filas repetidas"),
    ],
)
def test_slips_of_one_letter_are_put_right(said: str, meant: str) -> None:
    assert spelled(said) == meant


@pytest.mark.parametrize(
    "text",
    [
        "a simple example of a remote, formal former",
        "rename remvoe.csv, column called duplicte",
        "filtered samples, translated columns",
        "formato de las columnas",
        "`langauge` stays",
        *PLAIN,
    ],
)
def test_words_that_are_right_or_are_names_stay(text: str) -> None:
    assert spelled(text) == text


def test_the_request_is_kept_as_it_was_said() -> None:
    text = "remvoe near duplicates of a.jsonl at 0.9, no wait, 0.7"
    draft = plan_request(text)
    assert draft.request == text
    assert draft.workflow is not None
    assert draft.workflow["description"] == text
    assert [s["params"]["threshold"] for s in draft.workflow["steps"]] == [0.7]
