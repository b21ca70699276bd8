"""lang.detect and filter.lang."""

from typing import Any

import pytest
from pydantic import ValidationError
from support.tables import apply, books_balance, ids, reasons, texts

from datamill.operators.filter.lang import LangFilterParams
from datamill.operators.lang.scripts import SHARED

SENTENCES = {
    "en": "The new bridge will open to traffic next month after a year of work.",
    "pt": "A nova ponte vai abrir ao trânsito no próximo mês depois de um ano de obras.",
    "es": "El nuevo puente abrirá al tráfico el próximo mes después de un año de obras.",
    "fr": "Le nouveau pont ouvrira à la circulation le mois prochain après un an de travaux.",
    "de": "Die neue Brücke wird nach einem Jahr Bauzeit nächsten Monat für den Verkehr geöffnet.",
    "it": "Il nuovo ponte aprirà al traffico il mese prossimo dopo un anno di lavori.",
    "nl": "De nieuwe brug gaat volgende maand open voor het verkeer na een jaar werk.",
    "pl": "Nowy most zostanie otwarty dla ruchu w przyszłym miesiącu po roku prac.",
    "tr": "Yeni köprü bir yıllık çalışmanın ardından gelecek ay trafiğe açılacak.",
    "vi": "Cây cầu mới sẽ được thông xe vào tháng tới sau một năm thi công.",
    "zh": "世界上最长的河流之一从高原流向大海，沿途经过许多城市和村庄。",
    "ja": "新しい橋は一年間の工事を経て来月開通します。",
    "ko": "새로운 다리는 일 년간의 공사 끝에 다음 달 개통됩니다.",
    "ru": "Новый мост откроют для движения в следующем месяце после года работ.",
    "uk": "Новий міст відкриють для руху наступного місяця після року робіт.",
    "ar": "القطار يصل إلى المدينة في الصباح الباكر ويغادر في المساء",
    "fa": "قطار صبح زود به شهر می‌رسد و عصر حرکت می‌کند و مسافران را می‌برد",
    "el": "Η νέα γέφυρα θα ανοίξει τον επόμενο μήνα.",
    "he": "הגשר החדש ייפתח לתנועה בחודש הבא.",
    "th": "สะพานใหม่จะเปิดให้ใช้งานในเดือนหน้า",
    "hi": "नया पुल एक साल के काम के बाद अगले महीने यातायात के लिए खुलेगा।",
}


def labels(*values: str | None, **params: Any) -> list[tuple[str | None, str | None]]:
    rows = apply("lang.detect", texts(*values), **params).rows
    return list(zip(rows["lang"].to_pylist(), rows["lang_mix"].to_pylist(), strict=True))


@pytest.mark.parametrize("code", SENTENCES)
def test_sentences_get_their_language_with_confidence(code: str) -> None:
    row = apply("lang.detect", texts(SENTENCES[code])).rows.to_pylist()[0]
    assert (row["lang"], row["lang_mix"]) == (code, None)
    assert row["lang_score"] >= 0.65


@pytest.mark.parametrize(
    "text", ["", "   ", "12 34 56 78 90", "?!… 3 + 4 = 7 €", "🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂", "Hi there"]
)
def test_no_letters_or_too_short_is_unknown_without_a_score(text: str) -> None:
    row = apply("lang.detect", texts(text)).rows.to_pylist()[0]
    assert (row["lang"], row["lang_score"], row["lang_mix"]) == ("unknown", None, None)


def test_scripts_of_one_language_need_no_minimum() -> None:
    assert labels("你好", "안녕", "สวัสดี", "こんにちは") == [("zh", None), ("ko", None), ("th", None), ("ja", None)]


def test_mixed_text_names_its_languages_by_share() -> None:
    mixed = "我们的 deadline 是 Friday，请大家 review 一下这个 document。"
    assert labels(mixed) == [("zh", "zh+en")]
    assert labels(SENTENCES["en"] + " " + SENTENCES["ru"])[0][1] in {"en+ru", "ru+en"}


def test_a_few_foreign_words_do_not_make_a_text_mixed() -> None:
    assert labels(SENTENCES["zh"] + " GPT 模型", SENTENCES["en"] + " (北京)") == [("zh", None), ("en", None)]


def test_numbers_do_not_dilute_the_evidence() -> None:
    row = apply(
        "lang.detect", texts("Weng earns 12/60 = $<<12/60=0.2>>0.2 per minute and she was paid.")
    ).rows.to_pylist()[0]
    assert row["lang"] == "en"
    assert row["lang_score"] >= 0.65


def test_null_text_has_no_label_and_restricted_candidates_are_used() -> None:
    assert labels(None) == [(None, None)]
    assert labels(SENTENCES["pt"], languages=("en", "es")) == [("es", None)]


def test_labels_do_not_depend_on_neighbours() -> None:
    together = apply("lang.detect", texts(*SENTENCES.values())).rows["lang_score"].to_pylist()
    alone = [apply("lang.detect", texts(text)).rows["lang_score"][0].as_py() for text in SENTENCES.values()]
    assert together == alone


def test_candidates_are_known_to_the_model() -> None:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    known = set(LanguageIdentifier.from_model_file(MODEL_FILE).labels)
    assert {code for codes in SHARED.values() for code in codes} <= known


def detected(*values: str | None) -> Any:
    return apply("lang.detect", texts(*values)).rows


def test_filter_reasons() -> None:
    rows = detected(SENTENCES["en"], SENTENCES["pt"], "12345", None, "Zip zap zop blah foo bar baz")
    outcome = apply("filter.lang", rows, allow="en")
    assert reasons(outcome) == {1: "not_allowed", 2: "unknown_language", 3: "null_lang", 4: reasons(outcome)[4]}
    assert reasons(outcome)[4] in {"low_score", "not_allowed"}
    assert books_balance(rows, outcome)
    low = apply("filter.lang", detected(SENTENCES["en"]), allow="en", min_score=1.0)
    (fate,) = low.fates.to_pylist()
    assert (fate["reason"], fate["threshold"]) == ("low_score", 1.0)
    assert 0.65 <= fate["value"] < 1.0


@pytest.mark.parametrize(
    ("allow", "mixed", "stays"),
    [
        (["en", "zh"], "all", True),
        (["zh"], "all", False),
        (["en"], "any", True),
        (["zh"], "main", True),
        (["en"], "main", False),
        (["pt"], "any", False),
    ],
)
def test_mixed_policies(allow: list[str], mixed: str, *, stays: bool) -> None:
    rows = detected("我们的 deadline 是 Friday，请大家 review 一下这个 document。")
    outcome = apply("filter.lang", rows, allow=allow, mixed=mixed)
    assert (ids(outcome.rows) == [0]) is stays
    if not stays:
        assert outcome.fates.to_pylist()[0]["detail"] == "zh+en"


def test_unknown_may_stay_and_null_follows_its_policy() -> None:
    rows = detected("12345", None)
    assert ids(apply("filter.lang", rows, allow="en", unknown="keep").rows) == [0]
    assert ids(apply("filter.lang", rows, allow="en", on_null="keep").rows) == [1]


def test_filter_works_without_the_mixture_column() -> None:
    rows = detected(SENTENCES["en"], SENTENCES["zh"]).drop_columns(["lang_mix"])
    assert ids(apply("filter.lang", rows, allow=["zh"]).rows) == [1]


def test_two_filters_in_a_row_keep_nothing() -> None:
    rows = detected(SENTENCES["en"], SENTENCES["zh"])
    first = apply("filter.lang", rows, allow="en").rows
    assert apply("filter.lang", first, allow="zh").rows.num_rows == 0


def test_codes_are_normalised_and_names_are_answered() -> None:
    assert LangFilterParams(allow=("zh-CN", "EN", "en_US")).allow == ("zh", "en")
    with pytest.raises(ValidationError, match="`en`"):
        LangFilterParams(allow=("English",))
    with pytest.raises(ValidationError, match="`zh`"):
        LangFilterParams(allow=("中文",))
    for bad in ((), ("e",), ("12",)):
        with pytest.raises(ValidationError):
            LangFilterParams(allow=bad)
