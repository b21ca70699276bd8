"""Books balance and results do not depend on partitioning, for every operator of redaction, checking and formatting.

Random rows (hostile text, nulls, broken conversations) go through each operator whole, cut at random places and in
another order: rows and fates must be the same, and every row that went in is among the rows or the fates.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datamill.operators.declaration import Context
from datamill.operators.registry import find
from datamill.services.benchmarks import build_fingerprint
from datamill.services.engines.protocol import Outcome

QUESTION = "Lena picks 14 baskets of 23 plums on each of 5 days; how many plums does she pick altogether in that time?"
CONTEXT = Context(step="s", seed=3, resources=((build_fingerprint("eval", [QUESTION]), ("q1",)),))
SNIPPETS = (
    QUESTION, "a@b.com", "13912345678", "529.982.247-25", "<<1+1=2>>2\n#### 2", "<<1+1=3>>3\n#### 3", "#### 7", " ", "",
    '[{"role":"user","content":"hi"},{"role":"assistant","content":"yo"}]', '[{"role":"user","content":"hi"}]',
    '["x","y"]', "\\boxed{5}", "😀\u2028", "\\frac{1}{2}", "1,000",
)  # fmt: skip
CASES: Mapping[str, Mapping[str, Any]] = {
    "pii.redact replace": {"columns": ("a", "b")},
    "pii.redact drop": {"columns": ("a", "b"), "mode": "drop"},
    "decon.ngram drop": {"columns": ("a", "b"), "against": ("gsm8k:test",)},
    "decon.ngram tag": {"columns": ("a",), "against": ("gsm8k:test",), "action": "tag", "on_null": "drop"},
    "math.verify gold": {"prediction": "a", "gold": "b", "symbolic": False, "on_unknown": "drop"},
    "math.verify annotations": {"prediction": "a", "annotations": True, "on_null": "drop"},
    "format.chat columns": {"user": "a", "assistant": "b", "system": "c"},
    "format.chat messages": {"messages": "a"},
    "format.alpaca columns": {"instruction": "a", "input": "c", "output": "b"},
    "format.alpaca messages": {"messages": "a", "on_null": "keep"},
    "format.pt": {"columns": ("a", "b"), "on_null": "keep"},
    "format.preference": {"prompt": "a", "chosen": "b", "rejected": "c"},
    "format.preference lists": {"prompt": "a", "answers": "b", "rule": "all_pairs"},
}

text = st.one_of(st.none(), st.sampled_from(SNIPPETS), st.text(max_size=20))
rows = st.lists(st.tuples(text, text, text), max_size=12)


def as_table(values: list[tuple[str | None, str | None, str | None]]) -> pa.Table:
    size = len(values)
    columns = {name: pa.array([value[i] for value in values], pa.string()) for i, name in enumerate("abc")}
    system = {
        "_id": pa.array([f"{i:032x}" for i in range(size)], pa.string()),
        "_ord": pa.array([i << 10 for i in range(size)], pa.int64()),
        "_src": pa.array([f"f:{i}" for i in range(size)], pa.string()),
    }
    return pa.table({**system, **columns})


def merged(parts: list[Outcome]) -> tuple[pa.Table, list[dict[str, Any]]]:
    kept = pa.concat_tables([part.rows for part in parts]).sort_by([("_ord", "ascending"), ("_id", "ascending")])
    left = [fate for part in parts for fate in part.fates.to_pylist()]
    return kept, sorted(left, key=lambda fate: (fate["id"], fate["reason"]))


def prepared(case: str) -> Callable[[pa.Table], Outcome]:
    operator = find(case.split(maxsplit=1)[0])
    params = operator.params.model_validate(CASES[case])
    return lambda table: operator.run(table, params, CONTEXT)


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(values=rows, cuts=st.lists(st.integers(0, 12), max_size=3), seed=st.randoms(use_true_random=False))
def test_books_balance_for_any_partitioning(case: str, values: Any, cuts: list[int], seed: Any) -> None:
    run = prepared(case)
    table = as_table(values)
    kept, left = merged([run(table)])

    gone = [fate["id"] for fate in left if fate["fate"] in {"dropped", "quarantined"}]
    extra = [fate for fate in left if fate["fate"] == "expanded"]
    assert kept.num_rows + len(gone) == table.num_rows + len(extra)
    assert len(set(kept["_id"].to_pylist())) == kept.num_rows
    assert set(kept["_id"].to_pylist()) | set(gone) >= set(table["_id"].to_pylist())
    assert not set(kept["_id"].to_pylist()) & set(gone)

    order = list(range(len(values)))
    seed.shuffle(order)
    shuffled = table.take(pa.array(order, pa.int64()))
    bounds = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    parts = [run(shuffled.slice(lo, hi - lo)) for lo, hi in pairwise(bounds)]
    again, left_again = merged(parts)
    assert again.equals(kept)
    assert left_again == left


@pytest.mark.parametrize("case", CASES)
def test_reasons_are_declared_and_the_schema_is_kept(case: str) -> None:
    operator = find(case.split(maxsplit=1)[0])
    values = [(a, b, c) for a in (*SNIPPETS, None) for b in (*SNIPPETS[4:8], None) for c in ("x", None)]
    outcome = prepared(case)(as_table(values))
    declared = {reason for reason in operator.reasons if not reason.startswith("null_")}
    given_reasons = {reason for reason in outcome.fates["reason"].to_pylist() if not reason.startswith("null_")}
    assert given_reasons <= declared
    assert outcome.rows.schema == prepared(case)(as_table([])).rows.schema
