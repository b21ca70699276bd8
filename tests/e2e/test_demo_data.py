"""The demo data against its own truth: the generator keeps its word, and the example workflow finds what was planted.

Every row that left is looked up in `math_truth.jsonl` by its line. Of two copies either may stay, so copies are
scored by pairs. The negative control gives the same removals a truth with shuffled lines and asks for chance.
"""

import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.project import approved_run, compiled

from datamill.workflows.estimate import Estimate, estimate_plan
from datamill.workflows.execute import RunResult
from datamill.workflows.ledger import Books

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = ("math_raw.jsonl", "math_eval.jsonl", "math_truth.jsonl")
STEP_OF = {
    "too_short": "length", "foreign": "english", "wrong": "verify", "contaminated": "decon", "broken": "raw",
}  # fmt: skip
COPY_STEP = {"exact_copy": "exact", "near_copy": "near"}
KEPT_KINDS = ("sound", "off_topic")
FLOOR = 0.95


@dataclass(frozen=True)
class Demo:
    """The example workflow, estimated and run once in a folder of its own."""

    folder: Path
    estimate: Estimate
    result: RunResult
    truth: list[dict[str, Any]]
    removed: dict[str, set[int]]

    def lines(self, kind: str) -> set[int]:
        """Lines of one kind."""
        return {row["line"] for row in self.truth if row["kind"] == kind}


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def removed_lines(run: Path) -> dict[str, set[int]]:
    """Lines of the raw file that left, by step."""
    found: dict[str, set[int]] = {}
    for path in (run / "drops").glob("*.parquet"):
        for src, fate in pl.read_parquet(path, columns=["src", "fate"]).iter_rows():
            file, _, line = str(src).rpartition(":")
            if file.endswith("math_raw.jsonl") and fate in {"dropped", "merged", "quarantined", "failed"}:
                found.setdefault(path.stem, set()).add(int(line))
    return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(EXAMPLES / "data", folder / "examples" / "data")
    plan = compiled(folder, (EXAMPLES / "workflows" / "math_sft.yaml").read_text(encoding="utf-8"))
    estimate = estimate_plan(plan, folder)
    result = approved_run(folder, plan)
    return Demo(
        folder, estimate, result, read_jsonl(EXAMPLES / "data" / "math_truth.jsonl"), removed_lines(result.folder)
    )


def recall_and_precision(removed: set[int], planted: set[int]) -> tuple[float, float]:
    hit = len(removed & planted)
    return hit / len(planted), hit / len(removed) if removed else 0.0


def scores(demo: Demo, lines: Callable[[str], set[int]]) -> Iterator[tuple[str, float, float]]:
    """Recall and precision of the kinds that go by their own line."""
    for kind, step in STEP_OF.items():
        yield kind, *recall_and_precision(demo.removed.get(step, set()), lines(kind))


def pairs(truth: list[dict[str, Any]], raw: list[str], kind: str) -> dict[int, int]:
    """Line of the copy to the line of its original."""
    by_question = {
        json.loads(text)["question"]: row["line"]
        for row, text in zip(truth, raw, strict=True)
        if row["kind"] == "sound"
    }
    return {row["line"]: by_question[row["original"]] for row in truth if row["kind"] == kind}


def pair_scores(removed: set[int], chosen: Mapping[int, int]) -> tuple[float, float]:
    """A pair counts when exactly one of the two left; a removal counts when it belongs to a pair."""
    members = {*chosen, *chosen.values()}
    found = sum((copy in removed) != (original in removed) for copy, original in chosen.items())
    return found / len(chosen), len(removed & members) / len(removed) if removed else 0.0


@pytest.mark.parametrize("kind", STEP_OF)
def test_every_planted_kind_is_found(demo: Demo, kind: str) -> None:
    recall, precision = recall_and_precision(demo.removed[STEP_OF[kind]], demo.lines(kind))
    assert recall >= FLOOR
    assert precision >= FLOOR


@pytest.mark.parametrize("kind", COPY_STEP)
def test_of_every_pair_of_copies_one_stays(demo: Demo, kind: str) -> None:
    raw = (EXAMPLES / "data" / "math_raw.jsonl").read_text(encoding="utf-8").splitlines()
    recall, precision = pair_scores(demo.removed[COPY_STEP[kind]], pairs(demo.truth, raw, kind))
    assert recall >= FLOOR
    assert precision >= FLOOR


def test_of_no_pair_both_are_gone(demo: Demo) -> None:
    raw = (EXAMPLES / "data" / "math_raw.jsonl").read_text(encoding="utf-8").splitlines()
    gone = set().union(*demo.removed.values())
    chosen = pairs(demo.truth, raw, "exact_copy") | pairs(demo.truth, raw, "near_copy")
    assert not [copy for copy, original in chosen.items() if copy in gone and original in gone]


def test_no_sound_or_off_topic_row_is_lost(demo: Demo) -> None:
    raw = (EXAMPLES / "data" / "math_raw.jsonl").read_text(encoding="utf-8").splitlines()
    gone = set().union(*demo.removed.values())
    with_a_copy = {*pairs(demo.truth, raw, "exact_copy").values(), *pairs(demo.truth, raw, "near_copy").values()}
    lost = [line for kind in KEPT_KINDS for line in demo.lines(kind) & gone if line not in with_a_copy]
    assert lost == []


def test_shuffled_truth_scores_near_chance(demo: Demo) -> None:
    """The control: a scorer that could not fail would give this truth high marks too."""
    order = [row["line"] for row in demo.truth]
    random.Random(3).shuffle(order)
    moved = dict(zip((row["line"] for row in demo.truth), order, strict=True))
    for kind, recall, precision in scores(demo, lambda kind: {moved[line] for line in demo.lines(kind)}):
        chance = len(demo.lines(kind)) / len(demo.truth)
        assert recall <= chance + 0.12, kind
        assert precision <= chance + 0.12, kind


def test_shuffled_originals_score_near_chance(demo: Demo) -> None:
    """Pairs of a copy with somebody else's original: neither the copies' removal nor chance makes this high."""
    raw = (EXAMPLES / "data" / "math_raw.jsonl").read_text(encoding="utf-8").splitlines()
    for kind, step in COPY_STEP.items():
        true = pairs(demo.truth, raw, kind)
        sound = sorted(demo.lines("sound") - {*true.values()})
        false = dict(zip(sound, random.Random(4).sample(sound, len(true)), strict=False))
        recall, precision = pair_scores(demo.removed[step], false)
        assert recall <= 0.15, kind
        assert precision <= 0.15, kind


def test_books_balance_and_rows_add_up(demo: Demo) -> None:
    steps = {name: Books.from_flat(counts) for name, counts in demo.result.steps.items()}
    assert [name for name, books in steps.items() if books.balance] == []
    assert steps["raw"].rows_in == len(demo.truth)
    left = sum(sum(books.gone.values()) for books in steps.values())
    assert steps["raw"].rows_in - left == steps["slim"].rows_out
    assert len(read_jsonl(demo.folder / "out" / "clean.jsonl")) == steps["slim"].rows_out


def test_contaminated_questions_are_those_of_the_evaluation_set(demo: Demo) -> None:
    evaluation = {row["question"] for row in read_jsonl(EXAMPLES / "data" / "math_eval.jsonl")}
    kept = read_jsonl(demo.folder / "out" / "clean.jsonl")
    asked = {row["messages"][0]["content"].removeprefix("Please solve: ").lower() for row in kept}
    assert not {question.lower() for question in evaluation} & asked


def test_the_estimate_is_within_15_percent_after_every_step(demo: Demo) -> None:
    for step, counts in demo.result.steps.items():
        expected = demo.estimate.rows(step)
        assert expected is not None, step
        assert abs(expected - counts["out"]) <= 0.15 * counts["out"], step


def generated(folder: Path, *arguments: str) -> Path:
    command = [sys.executable, str(EXAMPLES / "make_math_raw.py"), "--out", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True, cwd=folder.parent)
    return folder


def test_the_generator_reproduces_the_committed_bytes(tmp_path: Path) -> None:
    made = generated(tmp_path / "again")
    for name in FILES:
        assert (made / name).read_bytes() == (EXAMPLES / "data" / name).read_bytes(), name


def test_another_seed_gives_other_rows_of_the_same_kinds(tmp_path: Path) -> None:
    made = generated(tmp_path / "other", "--seed", "8")
    assert (made / "math_raw.jsonl").read_bytes() != (EXAMPLES / "data" / "math_raw.jsonl").read_bytes()
    kinds = [
        Counter(row["kind"] for row in read_jsonl(folder / "math_truth.jsonl")) for folder in (made, EXAMPLES / "data")
    ]
    assert kinds[0] == kinds[1]


def test_size_and_counts() -> None:
    raw = EXAMPLES / "data" / "math_raw.jsonl"
    truth = read_jsonl(EXAMPLES / "data" / "math_truth.jsonl")
    assert raw.stat().st_size < 1_000_000
    assert 1400 <= len(truth) <= 1600
    assert [row["line"] for row in truth] == list(range(1, len(raw.read_text(encoding="utf-8").splitlines()) + 1))
    counts = Counter(row["kind"] for row in truth)
    assert set(counts) == {*STEP_OF, *COPY_STEP, *KEPT_KINDS}
    assert min(counts.values()) >= 12


ANNOTATION = re.compile(r"<<(\d+)([-+*/])(\d+)=(\d+)>>(\d+)")


def holds(answer: str) -> bool:
    """Independent of the product: every annotation by fractions, and the final number is the last result."""
    steps = ANNOTATION.findall(answer)
    value = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b}
    sound = all(value[o](Fraction(a), Fraction(b)) == Fraction(r) and r == shown for a, o, b, r, shown in steps)
    return bool(steps) and sound and answer.rsplit("#### ", 1)[1] == steps[-1][3]


def test_the_truth_about_answers_is_true() -> None:
    """Sound rows are right and `wrong` rows are wrong, by a check that shares no code with `math.verify`."""
    truth = read_jsonl(EXAMPLES / "data" / "math_truth.jsonl")
    raw = (EXAMPLES / "data" / "math_raw.jsonl").read_text(encoding="utf-8").splitlines()
    for row, text in zip(truth, raw, strict=True):
        if row["kind"] in {"sound", "exact_copy", "near_copy", "contaminated"}:
            assert holds(json.loads(text)["answer"]), row
        elif row["kind"] == "wrong":
            assert not holds(json.loads(text)["answer"]), row
