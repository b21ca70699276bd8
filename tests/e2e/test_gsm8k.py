"""Real rows: a sentence about GSM8K's training set, end to end, with planted faults to be found.

One run serves all tests: `datamill ask ... --approve` as a process of its own on the 7,473 rows, into which 100 wrong
final numbers and 50 questions of the test set were planted at seeded places. Memory is that of the whole process tree.
The wall time is printed and not asserted, as the machine may be shared; processor time is asserted.

Seven rows of the published file leave without having been planted. Each was read by a person:

- 0-based 356: the solution arrives at 48 + 16 = 64, the final says 66.
- 786: the solution reckons a year (9 reams) where 12 weeks were asked; the final, 3, is not what it arrives at.
- 1154: the solution takes one stocking a child (207); the final, 1035, counts five each.
- 2770: the solution sums 70 + 38 to 108, the final says 106.
- 4796: the solution sums 100 + 20 to 120, the final says 140.
- 7182: the solution finds x = 10 (which solves the equation), the final says 4.
- one of a pair of near duplicates (`NEAR`).

So all six contradict themselves, whichever side is right, and teach a model to do the same.
"""

import json
import random
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.process_tree import Watched, watch

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "gsm8k"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SHARED.is_dir(), reason="needs the GSM8K files of ../shared"),
]

CONTRADICT = frozenset({356, 786, 1154, 2770, 4796, 7182})
WRONG, LEAKED = 100, 50
REQUEST = (
    "clean data/train.jsonl, remove exact and near duplicates, verify the calculator annotations and the final "
    "answers, decontaminate against the questions of data/example_model_solutions.jsonl, format as chat and export"
)


@dataclass(frozen=True)
class Gsm8k:
    """The run and where everything was planted; lines count from 1."""

    folder: Path
    watched: Watched
    rows: list[dict[str, Any]]
    wrong: frozenset[int]
    leaked: frozenset[int]
    published: dict[int, int]
    removed: dict[str, frozenset[int]]

    @property
    def gone(self) -> frozenset[int]:
        """Lines that left at any step."""
        return frozenset().union(*self.removed.values())


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    # not splitlines: questions hold U+2028, which ends no record
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def with_wrong_final(row: dict[str, Any], generator: random.Random) -> dict[str, Any]:
    """The row with another final number; its solution stays as it is."""
    body, final = row["answer"].rsplit("#### ", 1)
    value = float(final.replace(",", ""))
    wrong = value + generator.choice((-3, 7, 13, 250)) + generator.choice((0, 1000))
    return {**row, "answer": f"{body}#### {wrong:g}"}


def leaked_row(question: dict[str, Any]) -> dict[str, Any]:
    """A question of the test set in the shape of a training row, with its right solution."""
    answer = re.sub(r"\nA: (.*)\Z", r"\n#### \1", question["ground_truth"].strip())
    return {"question": question["question"], "answer": answer}


def planted(generator: random.Random) -> list[tuple[str, int, dict[str, Any]]]:
    """Rows as `(kind, 0-based place in the published file or -1, row)`, in the order of the planted file."""
    published = read_jsonl(SHARED / "train.jsonl")
    sound = [number for number in range(len(published)) if number not in CONTRADICT]
    spoil = set(generator.sample(sound, WRONG))
    rows = [
        ("wrong", n, with_wrong_final(row, generator)) if n in spoil else ("clean", n, row)
        for n, row in enumerate(published)
    ]
    questions = generator.sample(read_jsonl(SHARED / "example_model_solutions.jsonl"), LEAKED)
    for question in questions:
        rows.insert(generator.randrange(len(rows)), ("leaked", -1, leaked_row(question)))
    return rows


def removed_lines(run: Path) -> dict[str, frozenset[int]]:
    found = {}
    for path in (run / "drops").glob("*.parquet"):
        left = pl.read_parquet(path).filter(pl.col("fate").is_in(["dropped", "merged", "quarantined", "failed"]))
        found[path.stem] = frozenset(int(src.rpartition(":")[2]) for src in left["src"])
    return found


@pytest.fixture(scope="module")
def gsm8k(tmp_path_factory: pytest.TempPathFactory) -> Gsm8k:
    folder = tmp_path_factory.mktemp("gsm8k")
    rows = planted(random.Random(11))
    (folder / "data").mkdir()
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for _, _, row in rows)
    (folder / "data" / "train.jsonl").write_text(text, encoding="utf-8")
    solutions = (SHARED / "example_model_solutions.jsonl").read_bytes()
    (folder / "data" / "example_model_solutions.jsonl").write_bytes(solutions)
    command = [sys.executable, "-m", "datamill", "ask", REQUEST, "-i", "data/train.jsonl", "--approve"]
    watched = watch(command, folder)
    assert watched.code == 0, watched.out

    def lines(kind: str) -> frozenset[int]:
        return frozenset(line for line, (k, _, _) in enumerate(rows, 1) if k == kind)

    published = {line: number for line, (_, number, _) in enumerate(rows, 1) if number >= 0}
    only_rows = [row for _, _, row in rows]
    removed = removed_lines(folder / "runs" / "latest")
    return Gsm8k(folder, watched, only_rows, lines("wrong"), lines("leaked"), published, removed)


def of_operator(gsm8k: Gsm8k, operator: str) -> frozenset[int]:
    report = json.loads((gsm8k.folder / "runs" / "latest" / "report.json").read_text(encoding="utf-8"))
    (step,) = [step["id"] for step in report["steps"] if step["operator"] == operator]
    return gsm8k.removed[step]


def test_memory_and_time(gsm8k: Gsm8k, capsys: pytest.CaptureFixture[str]) -> None:
    watched = gsm8k.watched
    with capsys.disabled():
        sys.stdout.write(
            f"\nGSM8K, {len(gsm8k.rows):,} rows: {watched.seconds:.1f} s wall, {watched.cpu_seconds:.1f} s of "
            f"processor time, peak {watched.peak_bytes / 1e9:.2f} GB\n"
        )
    assert 1e8 < watched.peak_bytes < 1.5e9
    assert watched.cpu_seconds < 60


def test_planted_wrong_finals_are_found_by_the_verifier(gsm8k: Gsm8k) -> None:
    assert len(gsm8k.wrong) == WRONG
    assert len(gsm8k.wrong & of_operator(gsm8k, "math.verify")) >= 0.95 * WRONG


def test_planted_test_questions_are_found_by_decontamination(gsm8k: Gsm8k) -> None:
    assert len(gsm8k.leaked) == LEAKED
    assert len(gsm8k.leaked & of_operator(gsm8k, "decon.ngram")) >= 0.95 * LEAKED


def test_no_clean_row_is_lost(gsm8k: Gsm8k) -> None:
    """What else left is the six rows that contradict themselves, and one of a pair of near duplicates."""
    others = {gsm8k.published[line] for line in gsm8k.gone - gsm8k.wrong - gsm8k.leaked}
    assert others >= CONTRADICT
    near = others - CONTRADICT
    merged = {gsm8k.published[line] for line in of_operator(gsm8k, "dedup.minhash")}
    assert near <= merged
    assert len(near) <= 1


def test_the_near_duplicate_is_one(gsm8k: Gsm8k) -> None:
    """By word sets, without shingles or hashes: the merged question has a neighbour almost equal to it."""
    merged = of_operator(gsm8k, "dedup.minhash")
    assert len(merged) == 1
    (line,) = merged
    words = set(gsm8k.rows[line - 1]["question"].lower().split())

    def likeness(row: dict[str, Any]) -> float:
        others = set(row["question"].lower().split())
        return len(words & others) / len(words | others)

    nearest = sorted((likeness(row) for n, row in enumerate(gsm8k.rows, 1) if n != line), reverse=True)
    assert nearest[0] >= 0.85
    assert nearest[1] < 0.6, "the control: the next row is an ordinary one"


def test_the_six_rows_contradict_themselves() -> None:
    """Shown without the verifier: the final is none of the values the solution arrives at."""
    published = read_jsonl(SHARED / "train.jsonl")
    for number in sorted(CONTRADICT):
        body, final = published[number]["answer"].rsplit("#### ", 1)
        results = {float(value) for value in re.findall(r"=\$?(-?[\d.]+)>>", body)}
        assert results, number
        assert float(final) not in results, number


def test_written_rows_are_those_that_did_not_leave(gsm8k: Gsm8k) -> None:
    report = json.loads((gsm8k.folder / "runs" / "latest" / "report.json").read_text(encoding="utf-8"))
    (output,) = report["outputs"]
    assert [step["id"] for step in report["steps"] if step["balance"]] == []
    assert output["rows"] == len(gsm8k.rows) - len(gsm8k.gone)
    assert len(read_jsonl(gsm8k.folder / output["path"])) == output["rows"]
