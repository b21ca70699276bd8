"""Case 42: one filter keeps English, Chinese and text that mixes them."""

import json
from pathlib import Path

import pytest
from support.cases import project_of, run_case
from support.project import compiled
from support.tables import apply, ids, reasons, texts

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "42-keep-two-languages"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")
TWO_FILTERS = """\
version: 1
name: two-languages
inputs: {load: {path: in.jsonl}}
steps:
  - {id: detect, operator: lang.detect, needs: load}
  - {id: english, operator: filter.lang, needs: detect, params: {allow: [en]}}
  - {id: chinese, operator: filter.lang, needs: english, params: {allow: [zh]}}
outputs: {kept: {from: chinese, path: out/kept.jsonl}}
"""


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


def test_two_single_language_filters_in_a_row_are_flagged_and_do_keep_nothing(tmp_path: Path) -> None:
    folder = project_of(CASE, tmp_path)
    plan = compiled(folder, TWO_FILTERS)
    (note,) = [note for note in plan.notes if note.code == "DM-PLAN-041"]
    assert (note.step, note.fix) == ("chinese", "one step with allow: [en, zh]")
    result, _ = run_case(folder, TWO_FILTERS)
    assert result.steps["english"]["out"] > 0
    assert result.steps["chinese"]["out"] == 0
    one = TWO_FILTERS.replace("allow: [en]", "allow: [en, zh]").replace("allow: [zh]", "allow: [zh, en]")
    assert [note for note in compiled(folder, one).notes if note.code == "DM-PLAN-041"] == []
