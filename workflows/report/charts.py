"""Charts of the report: bars and the funnel as tables with drawn cells, curves, ranges and a heat map as SVG.

Bars are HTML so that their words keep their size on a narrow screen and are read out as a table. Labels are escaped;
every length also stands there as a number, so colours never carry meaning alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

PLOT_WIDTH, PLOT_HEIGHT, MARGIN = 640, 220, 52
TICKS = 4
CELL = 46
LEGIBLE_CELLS = 14


def bars(items: Sequence[Sequence[Any]], title: str) -> Markup:
    """Horizontal bars for `[label, count]` pairs."""
    top = max((count for _, count in items), default=0) or 1
    rows = [
        f'<tr><th scope="row">{escape(str(label))}</th><td>{_track(count / top)}</td><td class="n">{count:,}</td></tr>'
        for label, count in items
    ]
    return _table(title, rows)


def funnel(steps: Sequence[Mapping[str, Any]]) -> Markup:
    """Rows after each step, the part that left drawn lighter behind it."""
    top = max((step["in"] for step in steps), default=0) or 1
    rows = []
    for step in steps:
        left = f"−{step['left']:,}" if step["left"] else ""
        added = f"+{step['added']:,}" if step["added"] else ""
        rows.append(
            f'<tr><th scope="row">{escape(step["id"])}</th><td>{_track(step["out"] / top, step["in"] / top)}</td>'
            f'<td class="n">{step["out"]:,}</td><td class="n soft">{" ".join(filter(None, (added, left)))}</td></tr>'
        )
    return _table("rows after each step, and how many left", rows)


def _track(share: float, behind: float = 0.0) -> str:
    """A bar of `share` of the width, at least a hair when there is anything, over a lighter one."""
    width = max(round(100 * share, 2), 0.4 if share else 0.0)
    shade = f'<i class="gone" style="width:{round(100 * min(behind, 1), 2)}%"></i>' if behind > share else ""
    return f'<span class="track">{shade}<i style="width:{min(width, 100)}%"></i></span>'


def _table(title: str, rows: Sequence[str]) -> Markup:
    body = "".join(rows)
    caption = f'<caption class="hidden">{escape(title)}</caption>'
    return Markup(f'<table class="bars">{caption}<tbody>{body}</tbody></table>')  # noqa: S704  labels are escaped


def ranges(plans: Sequence[Mapping[str, Any]]) -> Markup:
    """Score quantiles (0, 5, 25, 50, 75, 95, 100 %) of each plan on one scale: hair, thin, thick, median mark."""
    shown = [plan for plan in plans if plan["quantiles"]]
    if not shown:
        return Markup("")
    low = min(plan["quantiles"][0] for plan in shown)
    spread = (max(plan["quantiles"][-1] for plan in shown) - low) or 1.0
    row, left = 26, 70
    parts = [_head(PLOT_WIDTH, len(shown) * row + 22, "scores of the candidates, plan by plan")]
    for number, plan in enumerate(shown):
        xs = [left + (q - low) / spread * (PLOT_WIDTH - left - 12) for q in plan["quantiles"]]
        y = number * row + 13
        parts.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">plan {int(plan["plan"])}</text>')
        for begin, end, width in ((0, 6, 1), (1, 5, 4), (2, 4, 10)):
            x1, x2 = xs[begin], xs[end]
            parts.append(f'<line x1="{x1:.1f}" y1="{y}" x2="{x2:.1f}" y2="{y}" class="range" stroke-width="{width}"/>')
        parts.append(f'<line x1="{xs[3]:.1f}" y1="{y - 8}" x2="{xs[3]:.1f}" y2="{y + 8}" class="median"/>')
    base = len(shown) * row + 14
    parts.append(f'<text x="{left}" y="{base}" class="soft">{low:.3g}</text>')
    parts.append(f'<text x="{PLOT_WIDTH - 12}" y="{base}" text-anchor="end" class="soft">{low + spread:.3g}</text>')
    return _svg(parts)


def lines(points: Sequence[Sequence[float]], title: str, unit: str) -> Markup:
    """One line over steps, faint, with a running mean (exponential, factor 0.8) and ruled values."""
    if not points:
        return Markup("")
    xs, ys = [float(p[0]) for p in points], [float(p[1]) for p in points]
    low, high = min(ys), max(ys)
    spread, width = (high - low) or 1.0, (max(xs) - min(xs)) or 1.0
    bottom = PLOT_HEIGHT - 34

    def at(x: float, y: float) -> str:
        px = MARGIN + (x - min(xs)) / width * (PLOT_WIDTH - MARGIN - 14)
        return f"{px:.1f},{12 + (high - y) / spread * (bottom - 12):.1f}"

    smooth, mean = [], ys[0]
    for x, y in zip(xs, ys, strict=True):
        mean = 0.8 * mean + 0.2 * y
        smooth.append(at(x, mean))
    parts = [_head(PLOT_WIDTH, PLOT_HEIGHT, title), *_rules(low, spread, bottom)]
    parts.append(f'<polyline points="{" ".join(at(x, y) for x, y in zip(xs, ys, strict=True))}" class="raw"/>')
    parts.append(f'<polyline points="{" ".join(smooth)}" class="smooth"/>')
    parts.append(
        f'<text x="{MARGIN}" y="{PLOT_HEIGHT - 12}" class="soft">{escape(unit)} {min(xs):g}</text>'
        f'<text x="{PLOT_WIDTH - 14}" y="{PLOT_HEIGHT - 12}" text-anchor="end" class="soft">{max(xs):g}</text>'
    )
    return _svg(parts)


def _rules(low: float, spread: float, bottom: float) -> list[str]:
    parts = []
    for number in range(TICKS + 1):
        y = 12 + (bottom - 12) * number / TICKS
        value = low + spread * (1 - number / TICKS)
        parts.append(f'<line x1="{MARGIN}" y1="{y:.1f}" x2="{PLOT_WIDTH - 14}" y2="{y:.1f}" class="rule"/>')
        parts.append(f'<text x="{MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end" class="soft">{value:.3g}</text>')
    return parts


def heat(matrix: Sequence[Sequence[float]], title: str) -> Markup:
    """A square matrix of shares in [0, 1]; the number stands in every cell while it can be read."""
    numbers = len(matrix) <= LEGIBLE_CELLS
    side = CELL * len(matrix) + 2
    parts = [_head(side, side, title)]
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            x, y = j * CELL + CELL / 2 - 1, i * CELL + CELL / 2 + 4
            parts.append(
                f'<rect x="{j * CELL}" y="{i * CELL}" width="{CELL - 2}" height="{CELL - 2}" rx="4" class="bar" '
                f'opacity="{0.08 + 0.37 * value:.2f}"/>'
                + (f'<text x="{x}" y="{y}" text-anchor="middle">{value:.2f}</text>' if numbers else "")
            )
    return _svg(parts)


def _head(width: float, height: float, title: str) -> str:
    kind = "chart long" if width == PLOT_WIDTH else "chart"
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(title)}" class="{kind}">'
    )


def _svg(parts: Sequence[str]) -> Markup:
    return Markup("".join([*parts, "</svg>"]))  # noqa: S704  every label above is escaped
