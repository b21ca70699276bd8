"""Small SVG charts: bars, a funnel, lines and a heat map. Labels are escaped; colours never carry meaning alone."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

BAR_HEIGHT, LABEL_WIDTH, WIDTH = 18, 150, 420
PLOT_WIDTH, PLOT_HEIGHT, MARGIN = 560, 180, 42


def bars(items: Sequence[Sequence[Any]], title: str) -> Markup:
    """Horizontal bars for `[label, count]` pairs."""
    top = max((count for _, count in items), default=0) or 1
    parts = [_head(WIDTH, len(items) * BAR_HEIGHT + 4, title)]
    for number, (label, count) in enumerate(items):
        y = number * BAR_HEIGHT
        length = round((WIDTH - LABEL_WIDTH - 70) * count / top, 1)
        parts.append(
            f'<text x="{LABEL_WIDTH - 6}" y="{y + 13}" text-anchor="end">{escape(str(label)[:24])}</text>'
            f'<rect x="{LABEL_WIDTH}" y="{y + 3}" width="{max(length, 1)}" height="{BAR_HEIGHT - 6}" class="bar"/>'
            f'<text x="{LABEL_WIDTH + length + 6}" y="{y + 13}">{count:,}</text>'
        )
    return _svg(parts)


def funnel(steps: Sequence[dict[str, Any]]) -> Markup:
    """Rows after each step, the part that left drawn lighter behind it."""
    top = max((step["in"] for step in steps), default=0) or 1
    row = BAR_HEIGHT + 6
    parts = [_head(640, len(steps) * row + 4, "rows after each step")]
    for number, step in enumerate(steps):
        y = number * row
        scale = (640 - LABEL_WIDTH - 130) / top
        left = f" (-{step['left']:,})" if step["left"] else ""
        inside, out = round(step["in"] * scale, 1), round(step["out"] * scale, 1)
        parts.append(
            f'<text x="{LABEL_WIDTH - 6}" y="{y + 15}" text-anchor="end">{escape(step["id"][:24])}</text>'
            f'<rect x="{LABEL_WIDTH}" y="{y + 3}" width="{max(inside, 1)}" height="{BAR_HEIGHT - 2}" class="gone"/>'
            f'<rect x="{LABEL_WIDTH}" y="{y + 3}" width="{max(out, 1)}" height="{BAR_HEIGHT - 2}" class="bar"/>'
            f'<text x="{LABEL_WIDTH + max(inside, out) + 6}" y="{y + 15}">{step["out"]:,}{left}</text>'
        )
    return _svg(parts)


def lines(points: Sequence[Sequence[float]], title: str, unit: str) -> Markup:
    """One line over steps with a running mean (exponential, factor 0.8)."""
    if not points:
        return Markup("")
    xs, ys = [float(p[0]) for p in points], [float(p[1]) for p in points]
    low, high = min(ys), max(ys)
    spread = (high - low) or 1.0
    width = (max(xs) - min(xs)) or 1.0

    def at(x: float, y: float) -> str:
        px = MARGIN + (x - min(xs)) / width * (PLOT_WIDTH - MARGIN - 10)
        return f"{px:.1f},{10 + (high - y) / spread * (PLOT_HEIGHT - 40):.1f}"

    smooth, mean = [], ys[0]
    for x, y in zip(xs, ys, strict=True):
        mean = 0.8 * mean + 0.2 * y
        smooth.append(at(x, mean))
    parts = [_head(PLOT_WIDTH, PLOT_HEIGHT, title)]
    parts.append(f'<polyline points="{" ".join(at(x, y) for x, y in zip(xs, ys, strict=True))}" class="raw"/>')
    parts.append(f'<polyline points="{" ".join(smooth)}" class="smooth"/>')
    parts.append(f'<text x="4" y="16">{high:.3g}</text><text x="4" y="{PLOT_HEIGHT - 30}">{low:.3g}</text>')
    bottom = PLOT_HEIGHT - 10
    parts.append(
        f'<text x="{MARGIN}" y="{bottom}">{unit} {min(xs):g}</text>'
        f'<text x="{PLOT_WIDTH - 12}" y="{bottom}" text-anchor="end">{max(xs):g}</text>'
    )
    return _svg(parts)


def heat(matrix: Sequence[Sequence[float]], title: str) -> Markup:
    """A square matrix of shares in [0, 1]; the number stands in every cell."""
    cell = 46
    parts = [_head(cell * len(matrix) + 2, cell * len(matrix) + 2, title)]
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            x, y = j * cell + cell / 2 - 1, i * cell + cell / 2 + 4
            parts.append(
                f'<rect x="{j * cell}" y="{i * cell}" width="{cell - 2}" height="{cell - 2}" class="bar" '
                f'opacity="{0.12 + 0.6 * value:.2f}"/>'
                f'<text x="{x}" y="{y}" text-anchor="middle">{value:.2f}</text>'
            )
    return _svg(parts)


def _head(width: float, height: float, title: str) -> str:
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}" class="chart">'


def _svg(parts: Sequence[str]) -> Markup:
    return Markup("".join([*parts, "</svg>"]))  # noqa: S704  every label above is escaped
