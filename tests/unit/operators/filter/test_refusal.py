"""filter.refusal: refusals in four languages leave, ordinary answers stay."""

import pytest
from support.tables import apply, books_balance, ids, reasons, table

REFUSALS = [
    "I'm sorry, but I can't help with that request.",
    "I’m sorry, but I cannot provide that.",
    "As an AI language model, I do not have personal opinions.",
    "  AS A LANGUAGE MODEL I cannot do this.",
    "作为一个人工智能语言模型，我没有感情。",
    "很抱歉，我无法回答这个问题。",
    "Desculpe, mas não posso ajudar com isso.",
    "Como um modelo de linguagem, não tenho opiniões.",
    "Lo siento, pero no puedo ayudarte con eso.",
    "Como modelo de lenguaje, no tengo sentimientos.",
]
ANSWERS = [
    "Sorry, the train was late. It arrived at nine.",
    "The AI language model market grows by 30 % a year.",
    "He said he could not help with the harvest.",
    "语言模型是一种统计模型。",
    "Desculpe o atraso, o relatório está pronto.",
    "Lo siento mucho por tu pérdida, dijo Ana.",
    "",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_leave_with_the_phrase(text: str) -> None:
    outcome = apply("filter.refusal", table(output=[text]))
    (fate,) = outcome.fates.to_pylist()
    assert fate["reason"] == "refusal"
    assert fate["detail"] in text.lower().replace("’", "'")


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_stay(text: str) -> None:
    assert ids(apply("filter.refusal", table(output=[text])).rows) == [0]


def test_a_phrase_later_in_a_long_text_stays() -> None:
    story = "x" * 300 + " as an ai language model"
    assert ids(apply("filter.refusal", table(output=[story])).rows) == [0]
    assert ids(apply("filter.refusal", table(output=[story]), window=400).rows) == []


def test_languages_columns_and_own_phrases() -> None:
    rows = table(a=["fine", REFUSALS[4], "Nope nope", None], b=[REFUSALS[0], "fine", "fine", "fine"])
    outcome = apply("filter.refusal", rows, columns=["a", "b"], languages=["zh"], phrases=["NOPE"])
    assert reasons(outcome) == {1: "refusal", 2: "refusal"}
    assert books_balance(rows, outcome)
    assert reasons(apply("filter.refusal", rows, columns=["a"], on_null="drop"))[3] == "null_a"
