import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.project import compiled, make_project

from datamill.workflows.plan import Plan
from datamill.workflows.view import ascii_graph, graph_json, layout, mermaid, shown_params, svg

SVG = "{http://www.w3.org/2000/svg}"
CHAIN = """\
version: 1
name: chain
inputs: {load: {path: rows.jsonl, options: {max_bad: 0.5}}}
steps:
  - {id: fix, operator: text.fix_unicode, needs: load, params: {columns: [text]}}
  - {id: exact, operator: dedup.exact, needs: fix, params: {columns: [text]}}
outputs: {clean: {from: exact, path: PATH}}
"""
HOSTILE = "out/<script>alert(1)</script>&\"'.jsonl"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("view"), count=20)


def chain(project: Path, path: str) -> Plan:
    quoted = "'" + path.replace("'", "''") + "'"
    return compiled(project, CHAIN.replace("PATH", quoted))


def test_a_chain_is_one_line_and_branches_are_a_line_each(project: Path) -> None:
    assert ascii_graph(chain(project, "out/a.jsonl")) == "load > fix > exact > out/a.jsonl"
    assert ascii_graph(compiled(project)).splitlines() == [
        "load <- rows.jsonl", "fix <- load", "size <- fix", "exact <- size", "pick <- exact", "chat <- pick",
        "out/clean.jsonl <- chat", "out/exact.parquet <- exact",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [12, 20, 30, 40, 100])
@pytest.mark.parametrize("path", ["out/a.jsonl", "out/" + "long" * 60 + ".jsonl"])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(project: Path, width: int, path: str) -> None:
    text = ascii_graph(chain(project, path), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert re.sub(r"\s+", "", text) == f"load>fix>exact>{path}"
    assert all(len(line) <= width for line in ascii_graph(compiled(project), width).splitlines())


def test_an_svg_is_xml_and_hostile_labels_are_text_in_it(project: Path) -> None:
    plan = chain(project, HOSTILE)
    picture = svg(plan, {"fix": 1234})
    root = ET.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    assert not list(root.iter(f"{SVG}script"))
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert "1,234" in words
    assert any(word is not None and word.startswith("out/<script>") for word in words)
    assert "<script" not in picture
    assert not re.search(r"""\son\w+=|href=|javascript:""", picture)


def test_mermaid_quotes_hostile_labels(project: Path) -> None:
    text = mermaid(chain(project, HOSTILE))
    lines = text.splitlines()
    assert lines[0] == "flowchart LR"
    assert len([line for line in lines if "-->" in line]) == 3
    assert "<script" not in text
    for line in lines[1:5]:
        assert line.count('"') == 2, line


def test_layers_grow_along_edges_and_no_two_boxes_share_a_place(project: Path) -> None:
    picture = layout(compiled(project))
    at = {node.id: (node.layer, node.row) for node in picture.nodes}
    assert len(set(at.values())) == len(at)
    assert all(at[a][0] < at[b][0] for a, b in picture.edges)
    assert (picture.width, picture.height) == ((max(layer for layer, _ in at.values()) + 1) * 224, 158)
    data = graph_json(compiled(project))
    assert {node["id"] for node in data["nodes"]} == set(at)
    assert len(data["edges"]) == len(picture.edges)


def test_shown_parameters_are_those_that_differ() -> None:
    params = {"a": 1, "b": [1, 2], "c": None, "d": "x" * 90, "e": True}
    assert shown_params(params, {"a": 1}) == f"b=[1,2] d={'x' * 39}… e=True"
    assert shown_params({str(i): i + 1 for i in range(9)}, {}) == "0=1 1=2 2=3 3=4"
