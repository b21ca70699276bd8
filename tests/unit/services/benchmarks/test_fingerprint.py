"""Fingerprints: against a naive n-gram reference, template siblings, short questions, files and the registry."""

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamill.errors import DatamillError
from datamill.services.benchmarks import Fingerprint, build_fingerprint, find_benchmark, match_texts, names, register
from datamill.services.benchmarks.questions import read_questions
from datamill.services.benchmarks.tokens import Batch, run_hashes, whole_hashes, words

SHARED = Path(__file__).parents[4].parent / "shared"
QUESTION = (
    "A farmer has 12 cows and 7 goats in two long fields beside the river. Each cow gives 9 litres a day. "
    "How many litres of milk do the cows give in 14 days?"
)


def test_words_preserve_numbers_and_drop_the_rest() -> None:
    assert words("Janet’s 1,000 ducks: 3.50$ — naïve!") == ["janets", "1000", "ducks", "3.50", "naïve"]
    assert words("有12只鸭") == ["有", "12", "只", "鸭"]
    assert words("ＡＢＣ") == ["abc"]
    assert words("...") == []


def test_runs_equal_a_naive_enumeration() -> None:
    rng = random.Random(3)
    texts = [" ".join(rng.choice("abcdefg") for _ in range(rng.randint(0, 30))) for _ in range(60)]
    batch = Batch.of(texts)
    for length in (1, 3, 8, 13):
        hashes, owner = run_hashes(batch, length)
        naive = [
            (index, tuple(tokens[at : at + length]))
            for index, text in enumerate(texts)
            for tokens in [text.split()]
            for at in range(len(tokens) - length + 1)
        ]
        assert owner.tolist() == [index for index, _ in naive]
        by_gram: dict[tuple[str, ...], int] = {}
        for (_, gram), value in zip(naive, hashes.tolist(), strict=True):
            assert by_gram.setdefault(gram, value) == value
        assert len(set(by_gram.values())) == len(by_gram)
        assert not len(hashes) or int(hashes.max()) < 1 << 48


def test_hashes_of_a_text_do_not_depend_on_its_neighbours() -> None:
    alone = Batch.of([QUESTION])
    among = Batch.of(["x y z", QUESTION, ""])
    assert run_hashes(alone, 13)[0].tolist() == run_hashes(among, 13)[0].tolist()
    assert whole_hashes(alone)[0] == whole_hashes(among)[1]
    assert whole_hashes(among)[2] == 0


def test_copies_and_light_edits_are_found_siblings_are_not() -> None:
    index = build_fingerprint("mine", ["Something else entirely, of no concern here at all, really none.", QUESTION])
    same, embedded, edited, sibling, other = index.match_batch(
        [
            QUESTION.upper().replace(".", " !"),
            f"Please solve this. {QUESTION} Think step by step.",
            QUESTION.replace("litres of milk", "liters of fresh milk"),
            QUESTION.replace("12", "15").replace("14", "10").replace(" 9 ", " 8 "),
            "Nothing in common with it.",
        ]
    )
    assert same is not None
    assert (same.whole, same.question, same.overlap) == (True, 1, 1.0)
    assert embedded is not None
    assert embedded.overlap == 1.0
    assert edited is not None
    assert edited.is_contaminated()
    assert edited.same_numbers
    assert sibling is not None
    assert not sibling.same_numbers
    assert not sibling.is_contaminated()
    assert other is None


def test_short_questions_are_found_whole_and_from_eight_words_on_inside_a_text() -> None:
    index = build_fingerprint("short", ["What is two plus two?", "Which planet of our sun is the largest one"])
    whole, inside_short, inside_eight, near = index.match_batch(
        [
            "WHAT is two, plus two",
            "He asked: what is two plus two? Four.",
            "Tell me: which planet of our sun is the largest one, and why?",
            "which planet of our sun is the smallest one",
        ]
    )
    assert whole is not None
    assert whole.whole
    assert inside_short is None
    assert inside_eight is not None
    assert inside_eight.is_contaminated()
    assert near is None


def test_saving_loses_nothing(tmp_path: Path) -> None:
    built = build_fingerprint("a:b", [QUESTION, "What is two plus two?"])
    built.save(tmp_path / "x.npz")
    loaded = Fingerprint.load(tmp_path / "x.npz", "a:b")
    for name in ("runs", "owners", "wholes", "numbers", "number_offsets"):
        assert np.array_equal(getattr(built, name), getattr(loaded, name)), name
    assert built.lengths == loaded.lengths
    assert loaded.match_batch([QUESTION]) == built.match_batch([QUESTION])


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet", ".txt"])
def test_questions_are_read_from_every_format(tmp_path: Path, suffix: str) -> None:
    rows = [{"id": "q7", "Question": QUESTION, "answer": "1512"}, {"id": "q8", "Question": "Why?", "answer": "x"}]
    path = tmp_path / f"eval{suffix}"
    if suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    elif suffix == ".json":
        path.write_text(json.dumps(rows))
    elif suffix == ".csv":
        path.write_text("id,Question,answer\n" + "".join(f'{r["id"]},"{r["Question"]}",{r["answer"]}\n' for r in rows))
    elif suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text(f"{QUESTION}\nWhy?\n")
    found = read_questions(path)
    assert [question.text for question in found] == [QUESTION, "Why?"]
    assert found[0].label == ("line 1" if suffix == ".txt" else "q7")


def test_unreadable_questions_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"question": 1}\n')
    for path in (tmp_path / "bad.jsonl", tmp_path / "absent.jsonl"):
        with pytest.raises(DatamillError, match="DM-OPB-002"):
            read_questions(path)


def test_own_sets_are_registered_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "eval.jsonl").write_text(json.dumps({"question": QUESTION}) + "\n")
    register("farm:test", tmp_path / "eval.jsonl", project=tmp_path)
    assert "farm:test" in names(tmp_path)
    assert "farm:test" not in names()
    assert match_texts([QUESTION, "no"], tmp_path)["farm:test"] == 0.5
    with pytest.raises(DatamillError, match="did you mean `farm:test`"):
        find_benchmark("farm:tset", tmp_path)


def test_no_texts_match_nothing() -> None:
    assert set(match_texts([]).values()) == {0.0}


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared")
def test_the_shipped_gsm8k_fingerprint_separates_test_from_train() -> None:
    def questions(name: str) -> list[str]:
        lines = (SHARED / "data" / "gsm8k" / name).read_text().splitlines()
        return [json.loads(line)["question"] for line in lines]

    test = match_texts(f"Q: {text}\nA:" for text in questions("example_model_solutions.jsonl"))
    assert test["gsm8k:test"] == 1.0
    train = match_texts(questions("train.jsonl"))
    assert train["gsm8k:test"] == 0.0
    assert max(share for name, share in test.items() if name != "gsm8k:test") < 0.01
