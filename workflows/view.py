"""How a plan looks: layered layout of its graph, and the text, Mermaid and SVG pictures made from it.

Coordinates are computed here once, so terminal, report and page show the same picture.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from datamill.workflows.plan import Plan

NODE_WIDTH, NODE_HEIGHT, GAP_X, GAP_Y = 168, 46, 56, 22


@dataclass(frozen=True)
class Node:
    """A box of the picture: a step or an output, at a layer and a row within it."""

    id: str
    label: str
    detail: str
    layer: int
    row: int


@dataclass(frozen=True)
class Layout:
    """Boxes and the arrows between them."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]

    @property
    def width(self) -> int:
        """Width of the picture in pixels."""
        layers = max((node.layer for node in self.nodes), default=0) + 1
        return layers * (NODE_WIDTH + GAP_X)

    @property
    def height(self) -> int:
        """Height of the picture in pixels."""
        rows = max((node.row for node in self.nodes), default=0) + 1
        return rows * (NODE_HEIGHT + GAP_Y) + GAP_Y


def layout(plan: Plan) -> Layout:
    """Longest-path layers; within a layer, plan order."""
    layers: dict[str, int] = {}
    nodes: list[Node] = []
    used: dict[int, int] = {}

    def place(node_id: str, label: str, detail: str, layer: int) -> None:
        layers[node_id] = layer
        nodes.append(Node(node_id, label, detail, layer, used.get(layer, 0)))
        used[layer] = used.get(layer, 0) + 1

    for step in plan.steps:
        parents = [layers[name] for name in (*step.needs, *step.sides) if name in layers]
        place(step.id, step.id, step.operator, max(parents, default=-1) + 1)
    edges = list(plan.edges())
    for name, output in plan.outputs.items():
        place(f"output:{name}", name, output.path, layers.get(output.source, 0) + 1)
        edges.append((output.source, f"output:{name}"))
    return Layout(tuple(nodes), tuple(edges))


def ascii_graph(plan: Plan, width: int = 100) -> str:
    """The plan on a terminal: a line for a plain chain, else one line a step with its parents."""
    chain = all(len(step.needs) <= 1 and not step.sides for step in plan.steps)
    branching = any(len(plan.consumers(step.id)) > 1 for step in plan.steps)
    if chain and not branching and sum(step.is_source for step in plan.steps) == 1:
        outputs = [output.path for output in plan.outputs.values()]
        line = " > ".join([*(step.id for step in plan.steps), *outputs])
        return _wrap(line, width)
    lines = [f"{step.id} <- {', '.join((*step.needs, *step.sides)) or step.params.get('path')}" for step in plan.steps]
    lines += [f"{output.path} <- {output.source}" for output in plan.outputs.values()]
    return "\n".join(line[:width] for line in lines)


def _wrap(line: str, width: int) -> str:
    indent = "    "
    lines, rest = [], line
    while len(rest) > width:
        cut = rest.rfind(" > ", len(indent), width)
        cut = cut if cut > 0 else width  # one name fills the line: it goes on in the next
        lines.append(rest[:cut])
        rest = indent + rest[cut:].lstrip()
    return "\n".join([*lines, rest])


def mermaid(plan: Plan) -> str:
    """The plan as a Mermaid flowchart."""
    picture = layout(plan)
    names = {node.id: f"n{index}" for index, node in enumerate(picture.nodes)}
    boxes = [f'  {names[node.id]}["{_entities(node.label)}<br/>{_entities(node.detail)}"]' for node in picture.nodes]
    lines = ["flowchart LR", *boxes]
    lines += [f"  {names[a]} --> {names[b]}" for a, b in picture.edges]
    return "\n".join(lines)


MERMAID_ENTITIES: dict[int, str] = {
    ord(mark): code
    for mark, code in {"#": "#35;", "&": "#amp;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "`": "#96;"}.items()
}


def _entities(text: str) -> str:
    """`text` with what Mermaid or a page would read as markup in Mermaid's entity codes."""
    return text.translate(MERMAID_ENTITIES).replace("\n", " ")


def svg(plan: Plan, counts: Mapping[str, int] | None = None) -> str:
    """The plan as an SVG picture; `counts` (rows after a step) are written on the arrows."""
    picture = layout(plan)
    at = {node.id: _corner(node) for node in picture.nodes}
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {picture.width} {picture.height}" role="img" '
        f'aria-label="graph of the workflow" font-family="system-ui, sans-serif" font-size="12">'
    )
    parts = [head]
    parts += [_arrow(at[a], at[b], (counts or {}).get(a)) for a, b in picture.edges if a in at and b in at]
    parts += [_box(node, *at[node.id]) for node in picture.nodes]
    return "".join([*parts, "</svg>"])


def _corner(node: Node) -> tuple[int, int]:
    return node.layer * (NODE_WIDTH + GAP_X), GAP_Y + node.row * (NODE_HEIGHT + GAP_Y)


def _arrow(start: tuple[int, int], end: tuple[int, int], count: int | None) -> str:
    x1, y1 = start[0] + NODE_WIDTH, start[1] + NODE_HEIGHT // 2
    x2, y2 = end[0], end[1] + NODE_HEIGHT // 2
    middle = (x1 + x2) // 2
    line = f'<path d="M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}" fill="none" stroke="currentColor"/>'
    if count is None:
        return line
    return (
        f'{line}<text x="{middle}" y="{(y1 + y2) // 2 - 5}" text-anchor="middle" fill="currentColor">{count:,}</text>'
    )


def _box(node: Node, x: int, y: int) -> str:
    label, detail = escape(_cut(node.label, 24)), escape(_cut(node.detail, 26))
    return (
        f'<g><rect x="{x}" y="{y}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}" rx="6" fill="none" '
        f'stroke="currentColor"/><text x="{x + 10}" y="{y + 19}" fill="currentColor" font-weight="600">{label}</text>'
        f'<text x="{x + 10}" y="{y + 36}" fill="currentColor" opacity="0.7">{detail}</text></g>'
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def graph_json(plan: Plan) -> dict[str, Any]:
    """Layout as plain data."""
    picture = layout(plan)
    return {
        "nodes": [
            {"id": n.id, "label": n.label, "detail": n.detail, "x": _corner(n)[0], "y": _corner(n)[1]}
            for n in picture.nodes
        ],
        "edges": [{"from": a, "to": b} for a, b in picture.edges],
    }


def shown_params(params: Mapping[str, Any], defaults: Mapping[str, Any], limit: int = 4) -> str:
    """The parameters worth showing in one line: those that differ from their defaults first."""
    own = {k: v for k, v in params.items() if v != defaults.get(k) and v not in (None, [], {}, "")}
    parts = [f"{key}={_compact(value)}" for key, value in list(own.items())[:limit]]
    return " ".join(parts)


def _compact(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ",".join(_compact(item) for item in value) + "]"
    return _cut(str(value), 40)
