"""For any rows: books balance, types do not depend on the rows, and neither partitions nor order change a result."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import apply, books_balance, decide, table

from datamill.services.records import ID, ORD

BATCH: list[tuple[str, dict[str, Any]]] = [
    ("columns.cast", {"types": {"text": "int"}}),
    ("columns.cast", {"types": {"n": "string"}, "on_fail": "null"}),
    ("columns.map", {"column": "m", "expr": "coalesce(n, 0) + len(text)", "on_null": "drop"}),
    ("columns.map", {"column": "m", "template": "{text}/{n}"}),
    ("text.fix_unicode", {"on_null": "drop"}),
    ("text.normalize", {}),
    ("filter.length", {"min": 2, "max": 9}),
    ("filter.length", {"unit": "words", "max": 3, "on_null": "keep"}),
    ("lang.detect", {"min_chars": 3}),
    ("filter.gopher_quality", {"min_words": 1, "min_stop_words": 0}),
    ("filter.expr", {"expr": "n > 0 and len(text) > 1"}),
    ("filter.score", {"column": "n", "min": 0}),
    ("filter.refusal", {"columns": "text"}),
]
GLOBAL: list[tuple[str, dict[str, Any]]] = [
    ("sample.random", {"n": 5}),
    ("sample.random", {"fraction": 0.3}),
    ("sample.stratified", {"by": "text", "max_per_group": 1}),
    ("sample.stratified", {"by": ["n", "text"], "n": 4, "allocation": "equal"}),
    ("split", {"ratios": [0.8, 0.2], "group_by": "text", "stratify_by": "n"}),
    ("filter.topk", {"column": "n", "n": 3, "by": "text"}),
    ("filter.topk", {"column": "n", "fraction": 0.5, "order": "lowest", "on_null": "keep"}),
]
text = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.sampled_from(["the sea", "我们 go", "12", " ", "x\r\n", "As an AI language model"]),
)
rows = st.lists(st.tuples(text, st.one_of(st.none(), st.integers(-3, 3))), max_size=12).map(
    lambda values: table({"text": pa.string(), "n": pa.int64()}, text=[v[0] for v in values], n=[v[1] for v in values])
)


@pytest.mark.parametrize(("operator_id", "params"), BATCH)
@given(rows)
@settings(max_examples=15, deadline=None)
def test_batch_operators(operator_id: str, params: dict[str, Any], before: pa.Table) -> None:
    whole = apply(operator_id, before, **params)
    assert books_balance(before, whole)
    assert whole.rows.schema == apply(operator_id, before.slice(0, 0), **params).rows.schema
    cuts = [0, before.num_rows // 3, before.num_rows // 2, before.num_rows]
    parts = [apply(operator_id, before.slice(low, high - low), **params) for low, high in pairwise(cuts)]
    assert pa.concat_tables([part.rows for part in parts]).to_pylist() == whole.rows.to_pylist()
    one, other = (sorted(map(str, f.to_pylist())) for f in (pa.concat_tables([p.fates for p in parts]), whole.fates))
    assert one == other


@pytest.mark.parametrize(("operator_id", "params"), GLOBAL)
@given(rows)
@settings(max_examples=15, deadline=None)
def test_global_operators(operator_id: str, params: dict[str, Any], before: pa.Table) -> None:
    made = decide(operator_id, before, **params)
    assert made[ID].to_pylist() == sorted(before[ID].to_pylist())
    for partitions in (2, 7, 50):
        assert decide(operator_id, before, partitions, **params).to_pylist() == made.to_pylist()
    backwards = before.sort_by([(ORD, "descending")])
    assert decide(operator_id, backwards, **params).to_pylist() == made.to_pylist()
