"""Whole workflows: every engine and any number of partitions leave the same bytes, the same books and the same reasons."""

import re
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from support.engine_traces import everywhere
from support.parity_rows import parity_rows
from support.project import small_rows, write_rows
from support.random_workflows import fill, workflows
from support.scripted_server import ScriptedServer, Seen, Step, reply

import datamill as dm
from datamill.workflows.yaml_file import dump

EXAMPLES = Path(__file__).parents[2] / "examples"
RECIPES = Path(__file__).parents[2] / "workflows" / "recipes"
REQUESTS = {
    "code-sft": "make a code SFT set from rows.jsonl",
    "decontamination": "contamination report for rows.jsonl against eval.jsonl",
    "deduplication": "full dedup of rows.jsonl",
    "instruction-cleaning": "clean the instruction data in rows.jsonl for SFT",
    "math-reasoning-sft": "build a math reasoning SFT set from rows.jsonl",
    "multilingual-text": "build a multilingual set from rows.jsonl",
    "personal-data": "make rows.jsonl GDPR compliant",
    "preference-pairs": "build a DPO preference set from rows.jsonl",
    "statistics": "full report of rows.jsonl",
    "web-text-cleaning": "clean the web corpus in rows.jsonl for pre-training",
}
ANSWERED = {"instruction": "question", "output": "solution"}
SHAPES = {
    "code-sft": ANSWERED,
    "instruction-cleaning": ANSWERED,
    "math-reasoning-sft": {"question": "question", "answer": "solution"},
    "preference-pairs": {"instruction": "question", "chosen": "solution", "rejected": "rejected"},
    "decontamination": {"question": "question", "answer": "solution"},
}
"""Columns a recipe is given and where they come from; the others get `text` and what lies beside it."""
TEXT = {"text": "text", "n": "n", "kind": "kind", "score": "score"}
MIXED = """\
version: 1
name: mixed
seed: 3
inputs:
  first: {path: rows.jsonl, options: {max_bad: 0.5}}
  second: {path: more.csv}
  parts: {path: "parts/*.jsonl"}
steps:
  - {id: detect, operator: lang.detect, needs: first, params: {column: text}}
  - {id: english, operator: filter.lang, needs: detect, params: {allow: [en], unknown: keep}}
  - {id: slim, operator: columns.select, needs: english, params: {columns: [text, kind]}}
  - {id: other, operator: columns.select, needs: second, params: {columns: [text, kind]}}
  - {id: third, operator: columns.select, needs: parts, params: {columns: [text, kind]}}
  - {id: both, operator: mix.concat, needs: [slim, other, third], params: {domain_column: domain, weights: {slim: 0.6, other: 0.3, third: 0.1}}}
  - {id: near, operator: dedup.minhash, needs: both, params: {threshold: 0.7}}
  - {id: sides, operator: split, needs: near, params: {ratios: [0.8, 0.2], stratify_by: domain}}
outputs:
  out: {from: sides, path: out/sides.parquet, format: parquet}
  lines: {from: near, path: out/near.jsonl, format: jsonl, card: true}
"""

REWORDED = """\
version: 1
name: reworded
inputs: {load: {path: rows.jsonl, options: {max_bad: 0.5}}}
steps:
  - {id: size, operator: filter.length, needs: load, params: {columns: [text], unit: chars, min: 12}}
  - {id: say, operator: augment.paraphrase, needs: size, params: {column: text, n: 1}}
  - {id: exact, operator: dedup.exact, needs: say, params: {columns: [text]}}
outputs: {out: {from: exact, path: out/o.jsonl}}
"""


def parity_project(folder: Path, shape: Mapping[str, str] = TEXT, broken: tuple[str, ...] = ()) -> None:
    rows = parity_rows(72).to_pylist()
    shaped = [{name: row[column] for name, column in shape.items()} for row in rows]
    write_rows(folder / "rows.jsonl", [*shaped[:40], *broken, *shaped[40:]])
    write_rows(folder / "eval.jsonl", [{"question": rows[5]["question"], "answer": "8"}])
    lines = [f'"{(row["text"] or "").replace(chr(34), "")}",{row["kind"]}' for row in rows[20:50]]
    (folder / "more.csv").write_text("text,kind\n" + "\n".join(lines) + "\n", encoding="utf-8")
    for number in range(9):  # most of them empty
        own = rows[60:66] if number == 4 else rows[66:67] if number == 7 else []
        write_rows(folder / "parts" / f"{number}.jsonl", [{"text": row["text"], "kind": row["kind"]} for row in own])


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Workflows of all recipes, made by the rules planner from a sentence."""
    texts = {}
    for name, request in REQUESTS.items():
        folder = tmp_path_factory.mktemp(name)
        parity_project(folder, SHAPES.get(name, TEXT))
        inputs = [str(folder / "rows.jsonl")]
        texts[name] = dm.ask(request, inputs=inputs, project=folder, model="rules").to_yaml()
    return texts


def test_every_recipe_has_a_request() -> None:
    assert set(REQUESTS) == {
        yaml.safe_load(path.read_text(encoding="utf-8"))["name"] for path in RECIPES.glob("*.yaml")
    }


@pytest.mark.parametrize("recipe", REQUESTS)
def test_recipes(request: pytest.FixtureRequest, planned: dict[str, str], recipe: str) -> None:
    own = {step["operator"] for step in yaml.safe_load(planned[recipe])["steps"]}
    shipped = yaml.safe_load((RECIPES / f"{recipe_file(recipe)}").read_text(encoding="utf-8"))["steps"]
    needed = {step["operator"] for step in shipped if not step.get("optional") and not step.get("needs_role")}
    assert needed <= own, "the sentence did not bring this recipe"
    make = partial(parity_project, shape=SHAPES.get(recipe, TEXT))
    found = everywhere(request, planned[recipe], make, {"local": 8, "ray": 2, "spark": 8}, 72)
    assert found.outputs


def recipe_file(name: str) -> str:
    for path in RECIPES.glob("*.yaml"):
        if yaml.safe_load(path.read_text(encoding="utf-8"))["name"] == name:
            return path.name
    raise AssertionError(name)


@pytest.mark.parametrize("counts", [{"ray": 1, "spark": 2}, {"ray": 8, "spark": 1}])
def test_branches_weights_and_empty_shards(request: pytest.FixtureRequest, counts: dict[str, int]) -> None:
    make = partial(parity_project, broken=("{broken", "[1, 2]"))
    found = everywhere(request, MIXED, make, counts, 74)
    assert found.books["first"]["gone.quarantined"] == 2
    assert found.books["near"]["gone.merged"] > 0
    assert found.books["both"]["out"] > 20


def test_the_demo(request: pytest.FixtureRequest) -> None:
    text = (EXAMPLES / "workflows" / "math_sft.yaml").read_text(encoding="utf-8")

    def make(folder: Path) -> None:
        shutil.copytree(EXAMPLES / "data", folder / "examples" / "data")

    found = everywhere(request, text, make, {"ray": 3, "spark": 3}, 1500)
    assert all(found.books[step]["in"] > found.books[step]["out"] for step in ("exact", "near", "verify", "decon"))


@given(workflows())
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_workflows_agree(request: pytest.FixtureRequest, data: dict[str, Any]) -> None:
    everywhere(request, dump(data), fill, {"local": 3, "ray": 2, "spark": 2}, 30)


def test_a_model_is_asked_from_the_driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(folder: Path) -> None:
        write_rows(folder / "rows.jsonl", small_rows(40))
        (folder / "datamill.toml").write_text('[llm]\nmodel = "m"\nmax_rpm = 1000000\nmax_tpm = 1000000000\n')

    def reworded(seen: Seen) -> Step:
        found = re.search(r"<<<DATA \w+\n(.*)\nDATA", seen.body["messages"][1]["content"], re.DOTALL)
        assert found is not None
        return reply({"text": f"{found.group(1)}, in other words"}, usage=(50, 10))

    with ScriptedServer(reworded) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-parity")
        found = everywhere(request, REWORDED, make, {"ray": 2, "spark": 2}, 41)
    assert found.books["say"]["expanded"] > 20
