"""Warnings about the order of steps: a costly one before a cheap filter, filters that leave nothing."""

from pathlib import Path

import pytest
from support.project import compiled, write_rows

HEAD = "version: 1\nname: order\ninputs:\n  load: {path: rows.jsonl}\nsteps:\n"
PARAPHRASE = "  - {id: para, operator: augment.paraphrase, needs: load, params: {column: text}}\n"
DETECT = "  - {id: detect, operator: lang.detect, needs: load}\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("order")
    write_rows(folder / "rows.jsonl", [{"text": f"row {i}", "score": i} for i in range(5)])
    return folder


def warnings(folder: Path, body: str, code: str) -> list[tuple[str | None, int | None]]:
    notes = compiled(folder, HEAD + body).notes
    found = [note for note in notes if note.code == code]
    assert all(note.severity == "warning" for note in found)
    return [(note.step, note.line) for note in found]


def test_an_llm_step_before_an_independent_cheap_filter_is_flagged(project: Path) -> None:
    body = PARAPHRASE + "  - {id: cut, operator: filter.score, needs: para, params: {column: score, min: 2}}\n"
    assert warnings(project, body, "DM-PLAN-040") == [("para", 6)]
    notes = compiled(project, HEAD + body).notes
    (note,) = [note for note in notes if note.code == "DM-PLAN-040"]
    assert "put `cut` before `para`" in str(note.fix)


def test_a_filter_on_what_the_llm_step_makes_or_before_it_is_not_flagged(project: Path) -> None:
    depends = (
        PARAPHRASE
        + "  - {id: cut, operator: filter.length, needs: para, params: {columns: [text], unit: chars, min: 2}}\n"
    )
    assert warnings(project, depends, "DM-PLAN-040") == []
    before = (
        "  - {id: cut, operator: filter.score, needs: load, params: {column: score, min: 2}}\n"
        + PARAPHRASE.replace("load", "cut")
    )
    assert warnings(project, before, "DM-PLAN-040") == []
    cheap = "  - {id: fix, operator: text.fix_unicode, needs: load, params: {columns: [text]}}\n  - {id: cut, operator: filter.score, needs: fix, params: {column: score, min: 2}}\n"
    assert warnings(project, cheap, "DM-PLAN-040") == []


def language(step: str, needs: str, allow: str, more: str = "") -> str:
    return f"  - {{id: {step}, operator: filter.lang, needs: {needs}, params: {{allow: [{allow}]{more}}}}}\n"


def test_disjoint_language_filters_in_a_row_are_empty_by_construction(project: Path) -> None:
    body = DETECT + language("en", "detect", "en") + language("zh", "en", "zh")
    assert warnings(project, body, "DM-PLAN-041") == [("zh", 8)]
    (note,) = [note for note in compiled(project, HEAD + body).notes if note.code == "DM-PLAN-041"]
    assert note.fix == "one step with allow: [en, zh]"
    between = "  - {id: exact, operator: dedup.exact, needs: en, params: {columns: [text]}}\n"
    far = DETECT + language("en", "detect", "en") + between + language("zh", "exact", "zh, ja")
    assert warnings(project, far, "DM-PLAN-041") == [("zh", 9)]


@pytest.mark.parametrize(
    "body",
    [
        language("en", "detect", "en, zh") + language("zh", "en", "zh"),
        language("en", "detect", "en") + language("zh", "detect", "zh"),
        language("en", "detect", "en", ", mixed: any") + language("zh", "en", "zh", ", mixed: any"),
        language("en", "detect", "en", ", unknown: keep") + language("zh", "en", "zh", ", unknown: keep"),
        language("en", "detect", "en", ", on_null: keep") + language("zh", "en", "zh", ", on_null: keep"),
        language("en", "detect", "en") + DETECT.replace("id: detect", "id: again").replace("load", "en")
        + language("zh", "again", "zh"),
    ],
)  # fmt: skip
def test_language_filters_that_can_leave_something_are_not_flagged(project: Path, body: str) -> None:
    assert warnings(project, DETECT + body, "DM-PLAN-041") == []


@pytest.mark.parametrize(
    ("first", "second", "empty"), [("main", "main", True), ("all", "any", True), ("main", "any", False)]
)
def test_rules_for_mixed_text_decide(project: Path, first: str, second: str, empty: bool) -> None:
    body = (
        DETECT + language("en", "detect", "en", f", mixed: {first}") + language("zh", "en", "zh", f", mixed: {second}")
    )
    assert bool(warnings(project, body, "DM-PLAN-041")) == empty
