"""`report.html`: one file, no request to anywhere, every word of data escaped. Rendered from `report.json` alone.

The page holds no script, so a hostile record has nothing to run in; a Content-Security-Policy says so to the browser.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined, select_autoescape
from markupsafe import Markup

from datamill.workflows.report.charts import bars, funnel, heat, lines

TEMPLATE = "report.html.j2"


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=select_autoescape(default_for_string=True, default=True), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["number"] = _number
    environment.filters["visible"] = _visible
    return environment


def render(report: Mapping[str, Any]) -> str:
    """The page for a report."""
    text = (resources.files("datamill.workflows.report") / TEMPLATE).read_text(encoding="utf-8")
    template = _environment().from_string(text)
    graph = Markup(report["graph"])  # noqa: S704  made by workflows.view, which escapes every label
    return template.render(report=report, graph=graph, bars=bars, funnel=funnel, lines=lines, heat=heat)


def _number(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


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
