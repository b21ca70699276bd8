"""Writes the demo data: a raw pool with planted faults, an evaluation set, and the truth about every line.

    python examples/make_math_raw.py [--out examples/data] [--seed 7]

`math_raw.jsonl` holds about 1,500 lines: sound word problems, off-topic chat, exact and near copies, wrong answers,
answers that are too short, other languages, questions taken from `math_eval.jsonl`, and broken lines.
`math_truth.jsonl` says for every line number what it is. The same seed gives the same bytes.
"""

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from math_stories import tell
from small_talk import chat, foreign

COUNTS = {
    "sound": 760, "off_topic": 400, "exact_copy": 60, "near_copy": 60, "wrong": 60, "too_short": 40, "foreign": 48,
    "contaminated": 40, "broken": 12,
}  # fmt: skip
EVALUATION_ROWS = 64
SHINGLE = 5
APART = 0.5
BROKEN = (
    '{"question": "A line that was cut off in the mid',
    "not json at all",
    '["a", "list"]',
    '{"question" "no colon"}',
)
FILLERS = ("then", "also", "now", "later", "just", "still")


@dataclass(frozen=True)
class Line:
    """One line of the raw file and the truth about it."""

    kind: str
    text: str
    original: str = ""


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Word 5-grams; a shorter text is one shingle."""
    words = text.split()
    if len(words) < SHINGLE:
        return frozenset([tuple(words)])
    return frozenset(tuple(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1))


def jaccard(left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]) -> float:
    """Jaccard similarity of two shingle sets."""
    return len(left & right) / len(left | right)


class Distinct:
    """Lets a question pass only when it is far from all that passed before."""

    def __init__(self) -> None:
        self.by_shingle: dict[tuple[str, ...], list[int]] = {}
        self.sets: list[frozenset[tuple[str, ...]]] = []

    def passes(self, text: str) -> bool:
        """Whether `text` is new; remembers it when it is."""
        own = shingles(text)
        near = {index for item in own for index in self.by_shingle.get(item, ())}
        if any(jaccard(own, self.sets[index]) >= APART for index in near):
            return False
        for item in own:
            self.by_shingle.setdefault(item, []).append(len(self.sets))
        self.sets.append(own)
        return True


def row(question: str, answer: str, source: str) -> str:
    """One JSON line."""
    return json.dumps({"question": question, "answer": answer, "source": source}, ensure_ascii=False)


def sound_rows(generator: random.Random, distinct: Distinct, count: int) -> list[tuple[str, str, int]]:
    """`count` word problems far from each other."""
    found = []
    while len(found) < count:
        story = tell(generator)
        if distinct.passes(story[0]):
            found.append(story)
    return found


def chats(generator: random.Random, distinct: Distinct, count: int) -> Iterator[tuple[str, str]]:
    """`count` off-topic rows, no two with one question."""
    seen: set[str] = set()
    while len(seen) < count:
        question, answer = chat(generator)
        if question not in seen and distinct.passes(f"{question} {answer}"):
            seen.add(question)
            yield question, answer


def nearly(question: str, generator: random.Random) -> str:
    """The question with one small word put in near its end: similar above 0.85 for questions of this length."""
    words = question.split()
    words.insert(len(words) - 1, generator.choice(FILLERS))
    return " ".join(words)


def spoiled(answer: str, final: int, generator: random.Random) -> str:
    """The solution with another final number, or with an annotation that does not hold."""
    wrong = final + generator.choice((-7, -3, 2, 5, 11, 100))
    if generator.random() < 0.5:
        return answer.replace(f"#### {final}", f"#### {wrong}")
    return answer.replace(f"={final}>>{final}", f"={wrong}>>{wrong}").replace(f"#### {final}", f"#### {wrong}")


def make_lines(generator: random.Random) -> tuple[list[Line], list[str]]:
    """Lines of the raw pool in shuffled order, and lines of the evaluation set."""
    distinct = Distinct()
    stories = sound_rows(generator, distinct, COUNTS["sound"] + COUNTS["wrong"] + EVALUATION_ROWS)
    evaluation, rest = stories[:EVALUATION_ROWS], stories[EVALUATION_ROWS:]
    wrong, sound = rest[: COUNTS["wrong"]], rest[COUNTS["wrong"] :]
    lines = [Line("sound", row(q, a, "stories")) for q, a, _ in sound]
    lines += [Line("off_topic", row(q, a, "chat")) for q, a in chats(generator, Distinct(), COUNTS["off_topic"])]
    lines += [Line("wrong", row(q, spoiled(a, final, generator), "stories")) for q, a, final in wrong]
    originals = generator.sample(sound, COUNTS["exact_copy"] + COUNTS["near_copy"])
    exact, near = originals[: COUNTS["exact_copy"]], originals[COUNTS["exact_copy"] :]
    lines += [Line("exact_copy", row(q, a, "stories"), q) for q, a, _ in exact]
    lines += [Line("near_copy", row(nearly(q, generator), a, "stories"), q) for q, a, _ in near]
    lines += [Line("too_short", row(f"Item {i}?", "Fine.", "chat")) for i in range(COUNTS["too_short"])]
    lines += [Line("foreign", row(*foreign(generator, i), "chat")) for i in range(COUNTS["foreign"])]
    leaked = generator.sample(evaluation, COUNTS["contaminated"])
    lines += [
        Line("contaminated", row(q.upper() if i % 3 == 0 else f"Please solve: {q}", a, "stories"), q)
        for i, (q, a, _) in enumerate(leaked)
    ]
    lines += [Line("broken", BROKEN[i % len(BROKEN)]) for i in range(COUNTS["broken"])]
    generator.shuffle(lines)
    return lines, [row(q, a, "evaluation") for q, a, _ in evaluation]


def write(folder: Path, seed: int) -> None:
    """Write the three files into `folder`."""
    lines, evaluation = make_lines(random.Random(seed))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "math_raw.jsonl").write_text("".join(f"{line.text}\n" for line in lines), encoding="utf-8")
    (folder / "math_eval.jsonl").write_text("".join(f"{text}\n" for text in evaluation), encoding="utf-8")
    truth = [
        json.dumps({"line": n, "kind": line.kind, "original": line.original}, ensure_ascii=False)
        for n, line in enumerate(lines, 1)
    ]
    (folder / "math_truth.jsonl").write_text("".join(f"{text}\n" for text in truth), encoding="utf-8")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "data")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    write(arguments.out, arguments.seed)
    print(f"wrote {arguments.out}/math_raw.jsonl, math_eval.jsonl and math_truth.jsonl")


if __name__ == "__main__":
    main()
