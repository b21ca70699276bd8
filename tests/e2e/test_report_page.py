"""The report in a real browser: it opens from disk, asks for nothing, fits, and hostile text stays text."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser import Visit, axe_source, chromium
from support.project import approved_run, compiled, make_project, write_rows
from support.report_data import full_report

from datamill.workflows.report.page import render

HOSTILE = (
    "<script>window.hacked = 1; alert(1)</script> many words follow here",
    '</pre></details><img src=x onerror="window.hacked = 1"> many words follow',
    '<a href="javascript:window.hacked=1">click me</a> and many other words',
    "\N{RIGHT-TO-LEFT OVERRIDE}txet desrever\N{LEFT-TO-RIGHT ISOLATE} and an unclosed isolate",
    "nul \x00 escape \x1b[31m bell \x07 and delete \x7f characters",
    "{{ 7 * 7 }} {% raw %} templates are not run &lt;b&gt; twice",
    '</script><svg onload="window.hacked = 1"> <style>body { display: none }</style>',
    '<meta http-equiv=refresh content="0;url=https://example.org/"> words',
    "line one of many words\u2028line two\r\nline three",
)
HUGE = "x" * 1_000_000
WIDTHS = (375, 1280)
WORKFLOW = """\
version: 1
name: "hostile"
description: "<script>window.hacked = 1</script> </title> a description"
seed: 1
inputs:
  load: {path: rows.jsonl, options: {max_bad: 0.9}}
steps:
  - {id: short, operator: filter.length, needs: load, params: {columns: [text], unit: chars, min: 4, max: 60}}
outputs:
  clean: {from: short, path: out/clean.jsonl, format: jsonl, card: true}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def full_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    return page_of(full_report(folder), folder)


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile text in every column, as a name of a column, as a label, in broken lines, and in training samples."""
    folder = tmp_path_factory.mktemp("hostile")
    rows: list[Any] = [{"text": text, "source": text, "<b onclick=alert(1)>name": text} for text in HOSTILE]
    rows += [{"text": HUGE, "source": HUGE}, {"text": "short enough to stay", "source": HOSTILE[1]}]
    rows += ['{"broken <script>window.hacked = 1</script>', HUGE]
    write_rows(folder / "rows.jsonl", rows)
    result = approved_run(folder, compiled(folder, WORKFLOW))
    report = json.loads((result.folder / "report.json").read_text(encoding="utf-8"))
    training = full_report(make_project(folder / "other"))["training"]
    samples = [{"id": "a", "score": 1.0, "plan": 1, "text": text} for text in (*HOSTILE, HUGE[:600])]
    report["training"] = {**training, "best": samples, "notes": list(HOSTILE), "adapter": HOSTILE[0]}
    report["history"] = {
        "turns": [[HOSTILE[0], text] for text in HOSTILE], "changes": list(HOSTILE), "planner": HOSTILE[1],
        "planner_cost": {},
    }  # fmt: skip
    return page_of(report, folder)


def page_of(report: dict[str, Any], folder: Path) -> Path:
    file = folder / "page.html"
    file.write_bytes(render(report).encode("utf-8", "replace"))
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_opens_from_disk_without_a_word_or_a_request(browser: Any, full_page: Path, width: int, scheme: str) -> None:
    with Visit(browser, full_page, width, scheme) as visit:
        visit.open_details()
        visit.page.wait_for_load_state("networkidle")
        assert visit.messages == []
        assert visit.requests == [visit.url]
        assert visit.overflow() <= 0


def test_the_checks_can_fail(browser: Any, tmp_path: Path) -> None:
    """The control: a page with a request, an error and a wide line is caught."""
    file = tmp_path / "bad.html"
    file.write_text("<img src='missing.png'><div style='width:3000px'>wide</div><script>console.error('no')</script>")
    with Visit(browser, file, 375) as visit:
        visit.page.wait_for_load_state("networkidle")
        assert any("no" in message for message in visit.messages)
        assert len(visit.requests) == 2
        assert visit.overflow() > 2000


def test_what_is_shown(browser: Any, full_page: Path) -> None:
    with Visit(browser, full_page) as visit:
        text = visit.page.inner_text("body")
        for heading in ("Request", "Workflow", "Funnel", "Rows that left, by reason", "Before and after", "Training",
                        "Outputs", "Language model", "Notes and environment"):  # fmt: skip
            assert visit.page.get_by_role("heading", name=heading, exact=True).count() == 1, heading
        assert "balance" in text
        assert visit.page.locator("svg[role=img]").count() == 4, "graph, curve, ranges, overlap"
        bars = visit.page.locator(".track i:not(.gone)").evaluate_all("all => all.map(bar => bar.clientWidth)")
        assert len(bars) > 10
        assert max(bars) > 200


def test_bars_are_as_long_as_their_numbers_say(browser: Any, full_page: Path) -> None:
    with Visit(browser, full_page) as visit:
        rows = visit.page.locator("section:has(> h2:text-is('Funnel')) tr").evaluate_all(
            "all => all.map(row => [row.querySelector('.track i:not(.gone)').getBoundingClientRect().width,"
            " row.querySelector('.track').getBoundingClientRect().width, +row.querySelector('.n').innerText])"
        )
        counts = {count for _, _, count in rows}
        assert len(counts) >= 3
        for width, track, count in rows:
            assert width / track == pytest.approx(count / 101, abs=0.01)


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_text_stays_text(browser: Any, hostile_page: Path, width: int) -> None:
    with Visit(browser, hostile_page, width) as visit:
        visit.open_details()
        visit.page.wait_for_load_state("networkidle")
        assert visit.page.evaluate("window.hacked") is None
        assert visit.dialogs == []
        assert visit.messages == []
        assert visit.requests == [visit.url]
        assert visit.page.url == visit.url
        assert visit.overflow() <= 0
        assert visit.page.locator("script, iframe, img, a, meta[http-equiv=refresh]").count() == 0
        assert visit.page.locator("style").count() == 1
        assert visit.page.locator("[onclick], [onerror], [onload]").count() == 0


def test_hostile_text_is_shown_as_it_is(browser: Any, hostile_page: Path) -> None:
    with Visit(browser, hostile_page) as visit:
        visit.open_details()
        text = visit.page.inner_text("body")
        assert "<script>window.hacked = 1; alert(1)</script>" in text
        assert "{{ 7 * 7 }}" in text
        assert "49 {" not in text
        assert "\N{SYMBOL FOR NULL}" in text
        for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0, 0x1B):
            assert chr(code) not in text


def test_a_megabyte_line_does_not_make_a_megabyte_page(hostile_page: Path) -> None:
    assert hostile_page.stat().st_size < 300_000


def test_fifty_steps_with_training_stay_under_two_megabytes(browser: Any, tmp_path: Path) -> None:
    report = full_report(tmp_path)
    long = "a word and another " * 21
    step, group = report["steps"][2], {**report["drops"][0]}
    example = {"id": "a" * 32, "src": "rows.jsonl:1", "row": dict.fromkeys(("text", "answer", "context"), long)}
    group["examples"] = [example] * 5
    report["steps"] = [{**step, "id": f"step_{n}", "why": long[:100]} for n in range(50)]
    report["drops"] = [{**group, "step": f"step_{n}", "reason": f"reason {k}"} for n in range(50) for k in range(3)]
    plans = [{**report["training"]["plans"][1], "plan": n} for n in range(50)]
    curve = [[n, 2.0 + (n % 7) / 10] for n in range(5000)]
    overlap = [[1.0 if i == j else 0.3 for j in range(50)] for i in range(50)]
    report["training"] = {**report["training"], "plans": plans, "curve": curve, "overlap": overlap}
    file = page_of(report, tmp_path)
    assert file.stat().st_size < 2_000_000
    with Visit(browser, file, 375) as visit:
        visit.open_details()
        assert visit.overflow() <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_violation(
    browser: Any, full_page: Path, tmp_path_factory: pytest.TempPathFactory, scheme: str
) -> None:
    source = axe_source(tmp_path_factory.getbasetemp())
    with Visit(browser, full_page, 1280, scheme) as visit:
        visit.open_details()
        visit.page.evaluate(source)
        found = visit.page.evaluate("axe.run().then(result => result.violations)")
        serious = [
            (item["id"], [node["html"][:120] for node in item["nodes"]][:3])
            for item in found
            if item["impact"] in {"serious", "critical"}
        ]
        assert serious == []


def test_axe_sees_violations_where_there_are_some(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    source = axe_source(tmp_path_factory.getbasetemp())
    file = tmp_path_factory.mktemp("axe") / "bad.html"
    file.write_text("<html><body><img src='data:,'><p style='color:#eee;background:#fff'>pale</p></body></html>")
    with Visit(browser, file) as visit:
        visit.page.evaluate(source)
        found = {item["id"] for item in visit.page.evaluate("axe.run().then(result => result.violations)")}
    assert {"image-alt", "color-contrast"} <= found
