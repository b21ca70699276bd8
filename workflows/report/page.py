"""`report.html`: one file, no request to anywhere, every word of data escaped. Rendered from `report.json` alone.

The page holds no script, so a hostile record has nothing to run in; a Content-Security-Policy says so to the browser.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined, select_autoescape
from markupsafe import Markup

from datamill.workflows.report.charts import bars, funnel, heat, lines, ranges

TEMPLATE = "report.html.j2"
LONGEST_VALUE = 48


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=select_autoescape(default_for_string=True, default=True), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["number"] = _number
    environment.filters["visible"] = _visible
    environment.filters["moment"] = _moment
    environment.filters["compact"] = _compact
    environment.filters["duration"] = _duration
    return environment


def render(report: Mapping[str, Any]) -> str:
    """The page for a report."""
    text = (resources.files("datamill.workflows.report") / TEMPLATE).read_text(encoding="utf-8")
    template = _environment().from_string(text)
    graph = Markup(report["graph"])  # noqa: S704  made by workflows.view, which escapes every label
    return template.render(
        report=report, graph=graph, before_after=before_after(report["distributions"]), bars=bars, funnel=funnel,
        lines=lines, heat=heat, ranges=ranges, graph_height=graph_height(report["graph"]),
    )  # fmt: skip


def graph_height(svg: str) -> int:
    """Natural height of the graph in pixels, so that a long chain is scrolled and not shrunk."""
    found = re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)
    return round(float(found.group(1))) if found else 0


def before_after(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Histograms by column, each with every place it was measured at, so that before and after stand together."""
    cards: dict[str, dict[str, Any]] = {}
    for part in parts:
        place = f"{part['when']}: {part['step']}, {part['rows']:,} rows"
        for name, histogram in part["lengths"].items():
            items = [[f"{low:,}–{high:,}", count] for low, high, count in histogram]
            card = cards.setdefault(f"length {name}", {"title": f"characters of {name}", "charts": []})
            card["charts"].append({"place": place, "items": items})
        for name, items in part["labels"].items():
            card = cards.setdefault(f"label {name}", {"title": name, "charts": []})
            card["charts"].append({"place": place, "items": [[_visible(label), count] for label, count in items]})
    return list(cards.values())


def _number(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _moment(value: Any) -> str:
    """An ISO time to the minute, as people write it; anything else as it is."""
    text = str(value or "")
    return f"{text[:10]} {text[11:16]} UTC" if text[10:11] == "T" and text.endswith("+00:00") else text


def _duration(seconds: Any) -> str:
    if not isinstance(seconds, int | float):
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def _compact(params: Mapping[str, Any]) -> str:
    """Parameters in one line."""
    parts = []
    for name, value in params.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        parts.append(f"{name}={text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + '…'}")
    return "  ".join(parts)


def _visible(value: Any) -> str:
    """Text with control and direction-changing characters shown as symbols, so that it cannot disturb the page."""
    text = value if isinstance(value, str) else str(value)
    return "".join(_symbol(character) for character in text)


def _symbol(character: str) -> str:
    code = ord(character)
    if code < 32 and character not in "\n\t":
        return chr(0x2400 + code)
    if code == 127 or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069 or 0xD800 <= code <= 0xDFFF:
        return "\N{REPLACEMENT CHARACTER}"
    return character
