"""Case 42: one filter keeps English, Chinese and text that mixes them."""

import json
from pathlib import Path

import pytest
from support.tables import apply, ids, reasons, texts

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "42-keep-two-languages"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")


def test_one_filter_with_a_set_of_languages() -> None:
    rows = [json.loads(line) for line in (CASE / "in.jsonl").read_text(encoding="utf-8").splitlines()]
    names = [row["id"] for row in rows]
    labelled = apply("lang.detect", texts(*(row["text"] for row in rows))).rows
    assert labelled["lang_score"].null_count == 1
    assert dict(zip(names, labelled["lang"].to_pylist(), strict=True))["num"] == "unknown"
    outcome = apply("filter.lang", labelled, allow=["en", "zh"])
    assert [names[i] for i in ids(outcome.rows)] == ["en", "zh", "mix"]
    assert {names[i]: reason for i, reason in reasons(outcome).items()} == {
        "pt": "not_allowed",
        "ar": "not_allowed",
        "num": "unknown_language",
    }
    stays = apply("filter.lang", labelled, allow=["en", "zh"], unknown="keep")
    assert [names[i] for i in ids(stays.rows)] == ["en", "zh", "mix", "num"]
