"""Charts: lengths follow numbers, labels are escaped, empty and constant data draw."""

import re
from typing import Any

import pytest

from datamill.workflows.report.charts import LEGIBLE_CELLS, bars, funnel, heat, lines, ranges
from datamill.workflows.report.page import before_after, graph_height, render

HOSTILE = '"><script>alert(1)</script>'


def widths(markup: str) -> list[float]:
    return [float(width) for width in re.findall(r'<i style="width:([\d.]+)%"', markup)]


def numbers(markup: str, attribute: str) -> list[float]:
    return [float(value) for value in re.findall(rf' {attribute}="(-?[\d.]+)"', markup)]


def step(name: str, rows_in: int, rows_out: int, added: int = 0) -> dict[str, Any]:
    return {"id": name, "in": rows_in, "out": rows_out, "added": added, "left": rows_in - rows_out + added}


def test_bars_are_proportional_and_carry_their_counts() -> None:
    made = bars([["a", 200], ["b", 50], ["c", 0]], "shares")
    assert widths(made) == [100, 25, 0]
    assert re.findall(r'<td class="n">([\d,]+)</td>', made) == ["200", "50", "0"]


def test_a_share_above_zero_never_vanishes() -> None:
    assert widths(bars([["all", 1_000_000], ["one", 1]], "shares"))[1] > 0.3
    assert bars([["big", 1_234_567]], "shares").count("1,234,567") == 1


def test_no_bars_are_no_error() -> None:
    assert "<tbody></tbody>" in bars([], "nothing")
    assert "<tbody></tbody>" in funnel([])


def test_funnel_shows_what_left_behind_what_stayed() -> None:
    made = funnel([step("load", 100, 90), step("size", 90, 45), step("more", 45, 60, added=15)])
    assert widths(made) == [90, 45, 60]
    assert [float(w) for w in re.findall(r'class="gone" style="width:([\d.]+)%"', made)] == [100, 90]
    assert "−10" in made
    assert "−45" in made
    assert "+15" in made


@pytest.mark.parametrize(
    "made",
    [
        bars([[HOSTILE, 1]], HOSTILE), funnel([step(HOSTILE, 1, 1)]), lines([[1, 2.0], [2, 1.0]], HOSTILE, HOSTILE),
        heat([[1.0]], HOSTILE),
    ],
)  # fmt: skip
def test_labels_are_escaped(made: str) -> None:
    assert "<script" not in made
    assert "&lt;script&gt;" in made


def test_a_curve_spans_the_plot_from_its_highest_to_its_lowest_value() -> None:
    made = lines([[1, 3.0], [2, 1.0], [3, 2.0]], "loss", "step")
    raw = re.search(r'points="([^"]+)" class="raw"', made)
    assert raw is not None
    points = [tuple(map(float, pair.split(","))) for pair in raw.group(1).split()]
    heights = [y for _, y in points]
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert heights[0] == min(heights)
    assert heights[1] == max(heights)
    assert heights[2] == pytest.approx((heights[0] + heights[1]) / 2, abs=0.1)
    for value in ("3", "2.5", "2", "1.5", "1"):
        assert f">{value}</text>" in made


def test_the_running_mean_is_the_one_promised() -> None:
    made = lines([[0, 10.0], [1, 0.0]], "loss", "step")
    (raw, smooth) = (re.search(rf'points="([^"]+)" class="{kind}"', made) for kind in ("raw", "smooth"))
    assert raw is not None
    assert smooth is not None
    top, bottom = (float(pair.split(",")[1]) for pair in raw.group(1).split())
    mean = float(smooth.group(1).split()[1].split(",")[1])
    assert (bottom - mean) / (bottom - top) == pytest.approx(0.8, abs=0.01)


def test_constant_and_single_values_draw() -> None:
    assert "polyline" in lines([[1, 2.0], [2, 2.0]], "flat", "step")
    assert "polyline" in lines([[1, 2.0]], "one", "step")
    assert lines([], "none", "step") == ""


def test_ranges_share_one_scale() -> None:
    plans = [{"plan": 1, "quantiles": [0, 1, 2, 3, 4, 5, 10]}, {"plan": 2, "quantiles": [5, 5, 5, 5, 5, 5, 5]}]
    made = ranges([{"plan": 0, "quantiles": []}, *plans])
    assert "plan 0" not in made
    begins, ends = numbers(made, "x1"), numbers(made, "x2")
    assert len(begins) == 8
    scale = (ends[0] - begins[0]) / 10
    assert begins[3] - begins[0] == pytest.approx(3 * scale, abs=0.2), "the median mark"
    assert begins[4] == pytest.approx(begins[0] + 5 * scale, abs=0.2)
    assert ranges([]) == ""


def test_a_heat_map_writes_its_numbers_while_they_can_be_read() -> None:
    assert heat([[1.0, 0.25], [0.25, 1.0]], "overlap").count(">0.25<") == 2
    many = [[0.5] * (LEGIBLE_CELLS + 1)] * (LEGIBLE_CELLS + 1)
    assert "<text" not in heat(many, "overlap")
    opacity = numbers(heat([[0.0, 0.5, 1.0]] * 3, "overlap"), "opacity")
    assert opacity[:3] == sorted(opacity[:3])
    assert max(opacity) <= 0.45, "words on it stay readable"


def test_before_and_after_of_a_column_stand_together() -> None:
    parts = [
        {
            "when": "before",
            "step": "load",
            "rows": 1200,
            "lengths": {"text": [[4, 7, 3]]},
            "labels": {"lang": [["en", 2]]},
        },
        {"when": "after", "step": "end", "rows": 2, "lengths": {"text": [[1024, 2047, 1]], "more": []}, "labels": {}},
    ]
    cards = before_after(parts)
    assert [card["title"] for card in cards] == ["characters of text", "lang", "characters of more"]
    assert [chart["place"] for chart in cards[0]["charts"]] == ["before: load, 1,200 rows", "after: end, 2 rows"]
    assert cards[0]["charts"][1]["items"] == [["1,024–2,047", 1]]


def test_height_of_the_graph_comes_from_the_graph() -> None:
    assert graph_height('<svg viewBox="0 0 448 90" role="img">') == 90
    assert graph_height("<svg>") == 0


def test_a_report_with_a_missing_key_is_an_error_and_not_a_gap() -> None:
    with pytest.raises(Exception, match="graph"):
        render({"run": {}})
