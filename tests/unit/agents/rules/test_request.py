"""Folding, masking and clauses of a request; paths, languages and numbers in it."""

import pytest

from datamill.agents.rules.language import languages_named
from datamill.agents.rules.quantities import quantities
from datamill.agents.rules.request import PATH, Request, fold


@pytest.mark.parametrize(
    "text", ["Não é só ação", "把 A.jsonl 去重，阈值 ０.８", "İstanbul ẞ ﬁ", "", "x\ud800y", "🙂 e\u0301"]
)
def test_folding_keeps_one_character_for_one(text: str) -> None:
    assert len(fold(text)) == len(text)


def test_folding_drops_case_accents_and_width() -> None:
    assert fold("Não，ＡＢＣ→") == "nao,abc>"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("remove duplicates from the file", "en"),
        ("tira as linhas vazias do arquivo", "pt"),
        ("quita las filas vacías del archivo", "es"),
        ("用 MinHash 去重 data.jsonl", "zh"),
        ("dedup", "en"),
    ],
)
def test_language_of_a_request(text: str, language: str) -> None:
    assert Request(text).language == language


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("dedupe data/a.jsonl and write out/", ["data/a.jsonl", "out/"]),
        ("split 90/5/5 with Q/A and law / medicine", []),
        ("read a.jsonl.gz, then b.parquet.", ["a.jsonl.gz", "b.parquet"]),
        ("load ../../etc/shadow", ["../../etc/shadow"]),
        ("把data/zh.jsonl去重", ["data/zh.jsonl"]),
        ("解析 ./年报 目录", ["./年报"]),
        ("open C:\\Users\\x.csv now", ["C:\\Users\\x.csv"]),
        ("see https://a.example/b.jsonl", []),
        ("all of crawl/*.parquet", ["crawl/*.parquet"]),
        ("1/2 和 0.5 要算一样", []),
        ("Save ~/x.jsonl", ["~/x.jsonl"]),
    ],
)
def test_paths(text: str, paths: list[str]) -> None:
    assert [span.text for span in Request(text).paths] == paths


def test_names_of_files_ask_for_nothing() -> None:
    request = Request("read dedup_train.jsonl and 'near duplicates'")
    assert PATH * len("dedup_train.jsonl") in request.masked
    assert "dedup" not in request.masked
    assert "duplicates" not in request.masked


def test_clauses_cover_the_text_and_do_not_cut_numbers() -> None:
    request = Request("take 5,000 rows, then split. Keep a.b.jsonl; done")
    assert "".join(clause.text for clause in request.clauses) == request.masked
    assert any("5,000" in clause.text for clause in request.clauses)
    assert request.quote(0, 4) == "take 5,000 rows"


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("5,000 rows", 5000, "rows"),
        ("20k rows", 20_000, "rows"),
        ("limiar 0,85 para o texto", 0.85, ""),
        ("amostra de 2.500 linhas", 2500, "rows"),
        ("umbral 1.234,5 con texto", 1234.5, ""),
        ("threshold .8", 0.8, ""),
        ("lr 1.5e-4", 1.5e-4, ""),
        ("15 % of it", 15, "percent"),
        ("百分之二十的数据", 20, "percent"),
        ("两成数据", 20, "percent"),
        ("3 轮对话", 3, "turns"),
        ("训练三轮", 3, "epochs"),
        ("13-gram overlap", 13, "gram"),
        ("字符 5-gram", 5, "gram"),
        ("50M tokens", 50_000_000, "tokens"),
        ("twice", 2, "rounds"),
        ("two examples", 2, "rows"),
        ("1/10 of it", 10, "percent"),
        ("10 characters", 10, "chars"),
        ("一千万 token", 10_000_000, "tokens"),
        ("every 100 steps", 100, "steps"),
        ("warmup steps: 20 warmup steps", 20, "warmup"),
    ],
)
def test_numbers_with_their_units(text: str, value: float, unit: str) -> None:
    found = quantities(Request(text))
    assert [(q.value, q.unit) for q in found] == [(value, unit)]
    assert isinstance(found[0].value, type(value))


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("at least 5 words", "ge"),
        ("5 words or more", "ge"),
        ("shorter than 5 words", "lt"),
        ("no more than 5 words", "le"),
        ("over 5 words", "gt"),
        ("pelo menos 5 palavras", "ge"),
        ("menos de 5 palabras", "lt"),
        ("少于5个字", "lt"),
        ("不超过 5 个词", "le"),
        ("5 words", ""),
        ("generate 5 words", ""),
    ],
)
def test_comparisons(text: str, sign: str) -> None:
    assert quantities(Request(text))[0].sign == sign


def test_words_of_other_languages_are_no_numbers() -> None:
    assert quantities(Request("Tire as linhas dos exemplos com texto")) == ()
    assert quantities(Request("one record per section")) == ()
    assert quantities(Request("Qwen2.5-0.5B and latin-1")) == ()


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("English and German only", ["en", "de"]),
        ("português e espanhol", ["pt", "es"]),
        ("只保留中文和英语", ["zh", "en"]),
        ("en, zh and pt", ["en", "zh", "pt"]),
        ("es de la casa", []),
        ("中英混合", ["en", "zh"]),
    ],
)
def test_languages_named(text: str, codes: list[str]) -> None:
    assert sorted(code for _, code in languages_named(fold(text))) == sorted(codes)
