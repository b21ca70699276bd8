"""Real rows and the field's own cases on every engine: what one machine finds, all find."""

import json
import random
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.engine_traces import Trace, everywhere

import datamill as dm

SHARED = Path(__file__).parents[2].parent / "shared"
CASES = SHARED / "cases"
GSM8K = SHARED / "data" / "gsm8k"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases and data are not here")
REQUEST = (
    "clean data/train.jsonl, remove exact and near duplicates, verify the calculator annotations and the final "
    "answers, decontaminate against the questions of data/example_model_solutions.jsonl, format as chat and export"
)
REMOVED = """\
version: 1
name: removed
inputs: {load: {path: in.jsonl}}
steps:
  - {id: size, operator: filter.length, needs: load, params: {columns: [text], unit: chars, min: 10}}
  - {id: exact, operator: dedup.exact, needs: size, params: {columns: [text]}}
outputs: {kept: {from: exact, path: out/kept.jsonl}}
"""
PARTITIONS = """\
version: 1
name: partitions
inputs: {load: {path: INPUT}}
steps:
  - {id: exact, operator: dedup.exact, needs: load, params: {columns: [text]}}
  - {id: size, operator: filter.length, needs: exact, params: {columns: [text], unit: chars, min: 5}}
outputs: {kept: {from: size, path: out/kept.parquet, format: parquet}}
"""
THREE_STEPS = PARTITIONS.replace("INPUT", "'shard_*.jsonl'").replace("min: 5", "min: 6")


def case(number: int) -> Path:
    (folder,) = CASES.glob(f"{number}-*")
    return folder


def copied(number: int, folder: Path) -> None:
    shutil.copytree(case(number), folder, dirs_exist_ok=True, copy_function=shutil.copyfile)


def test_case_44_see_what_was_removed(request: pytest.FixtureRequest) -> None:
    found = everywhere(request, REMOVED, lambda folder: copied(44, folder), {"local": 5, "ray": 2, "spark": 5}, 5)
    assert (found.books["size"]["gone.dropped"], found.books["exact"]["gone.merged"]) == (2, 1)
    assert len(found.ids["exact"]) == 2
    assert sorted(map(len, found.reasons.values()), reverse=True)[:2] == [2, 1]


@pytest.mark.parametrize("counts", [{"ray": 1, "spark": 2}, {"ray": 7, "spark": 7}])
def test_case_48_partitions(request: pytest.FixtureRequest, counts: dict[str, int]) -> None:
    text = PARTITIONS.replace("INPUT", "in.jsonl")
    found = everywhere(request, text, lambda folder: copied(48, folder), counts, 7)
    assert len(found.ids["size"]) == 3


def test_case_48_fifty_files_of_which_most_are_empty(request: pytest.FixtureRequest) -> None:
    def make(folder: Path) -> None:
        lines = (case(48) / "in.jsonl").read_text(encoding="utf-8").splitlines()
        (folder / "parts").mkdir()
        for number in range(50):
            own = [line for index, line in enumerate(lines) if index * 7 == number]
            (folder / "parts" / f"{number:02d}.jsonl").write_text("".join(f"{line}\n" for line in own), "utf-8")

    text = PARTITIONS.replace("INPUT", '"parts/*.jsonl"')
    found = everywhere(request, text, make, {"ray": 1, "spark": 1}, 7)
    assert len(found.ids["size"]) == 3


def test_case_61_in_one_piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kills of this case are in test_faults; here every engine does the whole job."""

    def make(folder: Path) -> None:
        copied(61, folder)
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            runpy.run_path(str(folder / "make_input.py"))

    found = everywhere(request, THREE_STEPS, make, {"ray": 4, "spark": 4}, 400)
    assert len(found.ids["size"]) == 120


def with_faults(folder: Path) -> None:
    """The published rows, 100 of them with another final number, and 50 questions of the test set."""
    rng = random.Random(11)
    lines = [line for line in (GSM8K / "train.jsonl").read_text(encoding="utf-8").split("\n") if line]
    rows = [json.loads(line) for line in lines]
    for row in rng.sample(rows, 100):
        row["answer"] = row["answer"].rsplit("#### ", 1)[0] + f"#### {rng.randrange(10_000, 99_999)}"
    known = (GSM8K / "example_model_solutions.jsonl").read_text(encoding="utf-8").split("\n")
    for line in rng.sample([line for line in known if line], 50):
        question = json.loads(line)["question"]
        rows.insert(rng.randrange(len(rows)), {"question": question, "answer": "It is 4.\n#### 4"})
    (folder / "data").mkdir()
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "data" / "train.jsonl").write_text(text, encoding="utf-8")
    shutil.copyfile(GSM8K / "example_model_solutions.jsonl", folder / "data" / "example_model_solutions.jsonl")


@pytest.fixture(scope="module")
def gsm8k_plan(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("gsm8k")
    with_faults(folder)
    return dm.ask(REQUEST, inputs=[str(folder / "data" / "train.jsonl")], project=folder, model="rules").to_yaml()


@pytest.mark.slow
def test_gsm8k(request: pytest.FixtureRequest, gsm8k_plan: str) -> None:
    found: Trace = everywhere(request, gsm8k_plan, with_faults, {"ray": 4, "spark": 4}, 7523)
    assert sum(books.get("gone.dropped", 0) for books in found.books.values()) >= 148
    kept: dict[str, Any] = found.books[list(found.books)[-1]]
    assert 7300 <= kept["out"] <= 7400
