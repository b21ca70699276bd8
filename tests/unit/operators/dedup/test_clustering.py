"""Clustering without the driver makes the decisions of clustering on the driver, for any rows and any cut."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.parity_rows import parity_rows, shuffled_parts
from support.tables import decide, table

from datamill.errors import DatamillError
from datamill.operators.declaration import Context
from datamill.operators.dedup import minhash
from datamill.operators.dedup.clustering import attach, distinct_pairs, one_decision
from datamill.operators.registry import find
from datamill.services.engines.tables import TableDataset
from datamill.services.records import ID

CASES: list[dict[str, Any]] = [
    {"threshold": 0.6},
    {"threshold": 0.7, "keep": "best:score", "action": "drop_all"},
    {"threshold": 0.8, "verify": "none", "keep": "longest", "on_empty": "drop", "on_null": "drop"},
    {"threshold": 1.0, "unit": "chars"},
]
words = st.lists(st.sampled_from(["the", "sea", "was", "calm", "and", "blue"]), min_size=0, max_size=9).map(" ".join)


def distributed(rows: pa.Table, parts: int, params: dict[str, Any], **context: Any) -> pa.Table:
    operator = find("dedup.minhash")
    data = TableDataset(tuple(shuffled_parts(rows, parts)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minhash, "DRIVER_PAIRS", -1)
        made = operator.run([data], operator.params.model_validate(params), Context("step", seed=7, **context))
    return made.collect().sort_by(ID)


@pytest.mark.parametrize("params", CASES)
@pytest.mark.parametrize("parts", [1, 5])
def test_the_same_decisions(params: dict[str, Any], parts: int) -> None:
    wanted = decide("dedup.minhash", parity_rows(), **params)
    made = distributed(parity_rows(), parts, params)
    assert made.to_pylist() == wanted.to_pylist()
    assert made.schema == wanted.schema
    assert any(row["fate"] for row in wanted.to_pylist())


@given(st.lists(st.one_of(st.none(), words), max_size=14), st.sampled_from(CASES[:1] + CASES[3:]))
@settings(max_examples=25, deadline=None)
def test_any_rows(texts: list[str | None], params: dict[str, Any]) -> None:
    rows = table({"text": pa.string(), "score": pa.float64()}, text=texts, score=[1.0] * len(texts))
    assert distributed(rows, 3, params).to_pylist() == decide("dedup.minhash", rows, **params).to_pylist()


def test_the_driver_is_asked_for_few_pairs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit decides: with one pair too many nothing goes through the driver."""
    asked = []
    monkeypatch.setattr(minhash, "pairs_on_the_driver", lambda *_: asked.append(1) or _refuse())
    monkeypatch.setattr(minhash, "DRIVER_PAIRS", 0)
    decide("dedup.minhash", parity_rows(), threshold=0.6)
    assert asked == []
    monkeypatch.setattr(minhash, "DRIVER_PAIRS", 10**9)
    with pytest.raises(RuntimeError, match="driver"):
        decide("dedup.minhash", parity_rows(), threshold=0.6)


def _refuse() -> None:
    raise RuntimeError("driver")


def test_an_index_is_saved_all_the_same(tmp_path: Path) -> None:
    for name, limit in (("near", 10**9), ("far", -1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(minhash, "DRIVER_PAIRS", limit)
            operator = find("dedup.minhash")
            params = operator.params.model_validate({"threshold": 0.6, "save_index": f"{name}"})
            operator.run([TableDataset.of(parity_rows(), 3)], params, Context("s", 7, tmp_path)).collect()
    files = sorted(path.name for path in (tmp_path / "near").iterdir())
    assert files
    assert all((tmp_path / "near" / name).read_bytes() == (tmp_path / "far" / name).read_bytes() for name in files)


def test_a_repeated_id_is_an_error() -> None:
    rows = table(text=["the same words in a row of ten words or more here"] * 2)
    twice = rows.set_column(rows.column_names.index(ID), ID, pa.array([rows[ID][0].as_py()] * 2))
    with pytest.raises(DatamillError, match="two rows carry the same `_id`"):
        distributed(pa.concat_tables([twice, rows.slice(1)]), 1, {})


def test_parts() -> None:
    raw = pa.table(
        {
            "left": pa.array([1, 1, 2], pa.uint64()),
            "right": pa.array([2, 2, 3], pa.uint64()),
            "same": [False, True, False],
        }
    )
    once = distinct_pairs(TableDataset.of(raw, 2)).collect().sort_by("left").to_pylist()
    assert once == [{"left": 1, "right": 2, "same": True}, {"left": 2, "right": 3, "same": False}]
    keyed = pa.table({"row": pa.array([7, 8, 7], pa.uint64()), "what": ["a", "b", "c"]})
    named = pa.table({"node": pa.array([7, 9], pa.uint64()), "component": pa.array([1, 9], pa.uint64())})
    got = attach(TableDataset.of(keyed), TableDataset.of(named)).collect().sort_by("what").to_pylist()
    assert got == [{"row": 7, "what": "a", "component": 1}, {"row": 7, "what": "c", "component": 1}]
    alone = decide("dedup.minhash", parity_rows(9))
    marked = pa.concat_tables(
        [alone.append_column("decided", pa.nulls(9, pa.bool_())), alone.slice(2, 1).append_column("decided", [[True]])]
    )
    assert one_decision(marked).num_rows == 9
