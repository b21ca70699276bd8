"""A seeded corpus with planted near-duplicates, and a plan whose deduplication takes long enough to be disturbed."""

import random
from pathlib import Path

from support.project import write_rows

SHARDS = 8
PLAN = """\
version: 1
name: disturbed
seed: 3
inputs: {load: {path: rows.jsonl}}
steps:
  - {id: tidy, operator: text.normalize, needs: load, params: {columns: [text]}}
  - {id: near, operator: dedup.minhash, needs: tidy, params: {threshold: 0.7}}
  - {id: pick, operator: sample.random, needs: near, params: {n: 500}}
outputs:
  kept: {from: near, path: out/kept.jsonl, format: jsonl}
  some: {from: pick, path: out/some.parquet, format: parquet}
run: {shard_rows: ROWS}
"""


def make_corpus(folder: Path, count: int = 3000) -> int:
    """Write `rows.jsonl` and `plan.yaml`; returns how many rows were planted as near copies of an earlier one."""
    generator = random.Random(20261201)
    words = [f"word{number}" for number in range(5000)]
    texts: list[list[str]] = []
    copies = 0
    for number in range(count):
        if number % 5 == 4:
            text = list(texts[generator.randrange(number)])
            text[generator.randrange(len(text))] = f"changed{number}"
            copies += 1
        else:
            text = generator.choices(words, k=80)
        texts.append(text)
    write_rows(folder / "rows.jsonl", [{"text": " ".join(text)} for text in texts])
    (folder / "plan.yaml").write_text(PLAN.replace("ROWS", str(count // SHARDS)), encoding="utf-8")
    return copies
