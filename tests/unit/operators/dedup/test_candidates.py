"""The distributed pieces one by one, and on the streaming local engine."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamill.operators.declaration import Context
from datamill.operators.dedup import candidates
from datamill.operators.dedup.candidates import EDGE_SCHEMA, KEY_SCHEMA, band_key_table, pair_table, verify_table
from datamill.operators.dedup.minhash import MinHashParams, run
from datamill.services.engines import shards as shards_module
from datamill.services.engines.local import LocalEngine
from datamill.services.engines.protocol import Shard
from datamill.services.minhash import reference
from datamill.services.minhash.settings import SketchSettings

WORDS = [f"w{i}" for i in range(40)]
TEXTS = [" ".join(WORDS), " ".join(WORDS[:38]), "short one", " ".join(WORDS[:25]), " ".join(reversed(WORDS))]


def component_table(component: list[int], rows: list[int], texts: list[str]) -> pa.Table:
    return pa.table(
        {
            "component": pa.array(component, pa.int64()),
            "row": pa.array(rows, pa.uint64()),
            "text": pa.array(texts, pa.large_string()),
        }
    )


def test_band_keys_skip_blank_and_null_texts(make: Any) -> None:
    table = make(["a b", "", None, "c"]).collect()
    keys = band_key_table(table, column="text", settings=SketchSettings(bands=3))
    assert keys.schema.equals(KEY_SCHEMA)
    assert keys.num_rows == 6
    assert len(set(keys["row"].to_pylist())) == 2
    assert band_key_table(table.slice(1, 2), column="text", settings=SketchSettings()).schema.equals(KEY_SCHEMA)


def test_pairs_are_distinct_over_bands() -> None:
    table = pa.table([[1, 1, 2, 2, 3], [7, 8, 7, 8, 9], [20, 10, 20, 10, 30]], schema=KEY_SCHEMA)
    assert pair_table(table).to_pylist() == [{"left": 10, "right": 20, "same": False}]
    assert pair_table(table.slice(4)).num_rows == 0


@pytest.mark.parametrize("block_bytes", [1, 200, 1 << 24])
def test_verification_equals_the_reference_for_any_block_size(monkeypatch: Any, block_bytes: int) -> None:
    monkeypatch.setattr(candidates, "BLOCK_BYTES", block_bytes)
    table = component_table([0, 0, 0, 4, 4, 9, 9], [5, 3, 9, 40, 41, 70, 60],
                            [*TEXTS[:2], TEXTS[3], TEXTS[2], TEXTS[2], TEXTS[4], TEXTS[0]])  # fmt: skip
    text_of = dict(zip(table["row"].to_pylist(), table["text"].to_pylist(), strict=True))
    pairs = [(3, 5, 0), (3, 9, 0), (5, 9, 0), (40, 41, 4), (60, 70, 9)]
    broadcast = pa.table([list(column) for column in zip(*pairs, strict=True)], names=["left", "right", "component"])
    found = verify_table(table, pairs=broadcast, unit="auto", ngram=5, threshold=0.5)
    assert found.schema.equals(EDGE_SCHEMA)
    expected = [(a, b, reference.jaccard(text_of[a], text_of[b], "auto", 5)) for a, b, _ in pairs]
    assert [tuple(row.values()) for row in found.to_pylist()] == [row for row in expected if row[2] >= 0.5]
    assert 1 < found.num_rows < len(pairs)


def test_verification_of_a_partition_without_rows_or_pairs() -> None:
    broadcast = pa.table({"left": [1], "right": [2], "component": [5]})
    empty = component_table([], [], [])
    assert verify_table(empty, pairs=broadcast, unit="auto", ngram=5, threshold=0.5).num_rows == 0
    other = component_table([3], [9], ["x"])
    assert verify_table(other, pairs=broadcast, unit="auto", ngram=5, threshold=0.5).num_rows == 0


def test_a_partition_holds_any_subset_of_the_components() -> None:
    table = component_table([0, 0, 9, 9], [1, 2, 7, 8], [TEXTS[0]] * 4)
    pairs = {"left": [1, 3, 5, 7], "right": [2, 4, 6, 8], "component": [0, 4, 5, 9]}
    found = verify_table(table, pairs=pa.table(pairs), unit="auto", ngram=5, threshold=0.5)
    assert found.to_pylist() == [{"left": 1, "right": 2, "value": 1.0}, {"left": 7, "right": 8, "value": 1.0}]


def test_verified_candidates_contain_the_unverified_ones(make: Any) -> None:
    generator = np.random.default_rng(4)
    texts = []
    for _ in range(60):
        base = [f"w{i}" for i in generator.integers(0, 5000, 60)]
        texts.append(" ".join(base))
        base[int(generator.integers(60))] = "changed"
        texts.append(" ".join(base[: int(generator.integers(40, 60))]))
    data = make(texts)

    def met(settings: SketchSettings) -> set[tuple[int, int]]:
        keys = band_key_table(data.collect(), column="text", settings=settings).sort_by("key")
        return {(row["left"], row["right"]) for row in pair_table(keys).to_pylist()}

    plain, widened = met(SketchSettings(verify="none")), met(SketchSettings())
    assert plain < widened


@pytest.mark.parametrize(("shard_rows", "partition_bytes"), [(7, 1 << 27), (200, 1 << 27), (20, 500)])
def test_streaming_engine_decides_like_the_reference(
    make: Any, tmp_path: Path, monkeypatch: Any, shard_rows: int, partition_bytes: int
) -> None:
    monkeypatch.setattr(shards_module, "PARTITION_BYTES", partition_bytes)
    generator = np.random.default_rng(8)
    texts = [" ".join(f"w{i}" for i in generator.integers(0, 3000, 40)) for _ in range(40)]
    texts += [text + " tail" for text in texts[:15]] + ["", "yes", "yes", texts[0]]
    data = make(texts)
    expected = pl.DataFrame(run([data], MinHashParams(), Context("s")).collect()).sort("_id")
    shards = []
    for number, first in enumerate(range(0, len(texts), shard_rows)):
        path = tmp_path / f"{number}.parquet"
        table = data.collect().slice(first, shard_rows)
        pq.write_table(table, path)
        shards.append(Shard(path, table.num_rows, str(number)))
    with LocalEngine(1, tmp_path / "scratch") as engine:
        decided = run([engine.dataset(shards, data.schema)], MinHashParams(), Context("s")).collect()
    assert pl.DataFrame(decided).sort("_id").equals(expected)
    assert expected.get_column("fate").to_list().count("merged") == 17
