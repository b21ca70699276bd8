"""Rows on which every operator has something to do, and ways to cut and shuffle them."""

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
from support.tables import table

WORDS = [
    "the",
    "sea",
    "was",
    "calm",
    "and",
    "of",
    "a",
    "colour",
    "that",
    "nobody",
    "in",
    "the",
    "village",
    "had",
    "seen",
    "before",
    "it",
    "rained",
    "for",
    "to",
    "be",
    "with",
]
CHINESE = "今天天气很好我们一起去公园散步看见很多人在湖边钓鱼孩子们跑来跑去笑声不断"
TYPES = {
    "text": pa.string(), "n": pa.int64(), "score": pa.float64(), "kind": pa.string(), "blank": pa.string(),
    "messages": pa.list_(pa.struct({"role": pa.string(), "content": pa.string()})),
}  # fmt: skip


def _text(index: int) -> str | None:
    rng = random.Random(index // 3)
    if index % 17 == 16:
        return None
    if index % 13 == 12:
        return " \u3000" if index % 2 else ""
    if index % 7 == 5:
        start = rng.randrange(8)
        return CHINESE[start:] + CHINESE[: start + index % 3]
    words = [rng.choice(WORDS) for _ in range(40)]
    if index % 3 == 1:
        words[20] = "changed"
    tail = f" Write to anna{index}@example.org or 192.168.0.{index % 250}." if index % 5 == 4 else ""
    return " ".join(words) + tail


def parity_rows(count: int = 72) -> pa.Table:
    """Near copies, exact copies, blanks, nulls, two scripts, addresses, wrong sums, ties and a column of nulls only."""
    rows: list[dict[str, Any]] = []
    for i in range(count):
        text = _text(i - 9 if i % 19 == 18 else i)
        total = i + 4 if i % 11 == 7 else i + 3
        rows.append(
            {
                "text": text,
                "n": None if i % 10 == 9 else i * i % 13,
                "score": None if i % 12 == 11 else round((i * 37 % 29) / 7, 3),
                "kind": ("web", "book", "code")[i * i % 3],
                "blank": None,
                "question": f"What is {i} plus 3 when the sea is calm and nobody is in the village today?",
                "solution": f"It is {i} + 3 = <<{i}+3={total}>>{total}.\n#### {total}",
                "gold": str(i + 3),
                "rejected": f"It is {i}.",
                "messages": [{"role": "user", "content": f"Say {i}"}, {"role": "assistant", "content": text or "no"}],
            }
        )
    return table(TYPES, **{name: [row[name] for row in rows] for name in rows[0]})


def shuffled_parts(rows: pa.Table, count: int, seed: int = 3) -> list[pa.Table]:
    """Rows in an order of their own, cut into `count` tables of uneven size, the first one empty when there are many."""
    order = list(range(rows.num_rows))
    random.Random(seed).shuffle(order)
    mixed = rows.take(pa.array(order, pa.int64()))
    if count == 1:
        return [mixed]
    bounds = [0, *sorted({1, *(rows.num_rows * i * i // count**2 for i in range(1, count))}), rows.num_rows]
    parts = [mixed.slice(low, high - low) for low, high in pairwise(bounds)]
    return [rows.slice(0, 0), *parts] if count > 2 else parts
