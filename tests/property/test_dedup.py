"""Deduplication under hypothesis: partitioning, order, books, and kernel against reference on any Unicode."""

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from datamill.operators.declaration import Context
from datamill.operators.dedup import exact, minhash
from datamill.services.engines.tables import TableDataset
from datamill.services.minhash import reference
from datamill.services.minhash.settings import SketchSettings
from datamill.services.minhash.sketch import blank_mask, shingle_set_arrays, sketch_column

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
SCRIPTS = st.text("aB é\u0301\u0323ß是们。ก\u0e48ក각ᄀ\u1161\u3000\u00a0\n1\U0001f600İΣ-", max_size=40)
UNITS = st.sampled_from(["words", "chars", "auto"])
WORDY = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=9).map(" ".join)


@given(st.lists(st.one_of(ANY_TEXT, SCRIPTS, st.none()), max_size=6), UNITS, st.integers(1, 6), st.integers(0, 3))
@settings(max_examples=300, deadline=None)
def test_kernel_shingles_equal_the_reference(texts: list[str | None], unit: Any, ngram: int, skip: int) -> None:
    column = pa.array(["pad"] * skip + texts, pa.string()).slice(skip)
    flat, limits = shingle_set_arrays(column, unit, ngram)
    for i, text in enumerate(texts):
        expected = sorted(map(reference.shingle_hash, reference.shingles(text or "", unit, ngram)))
        assert flat[limits[i] : limits[i + 1]].tolist() == expected


@given(st.lists(st.one_of(ANY_TEXT, SCRIPTS), min_size=1, max_size=6), UNITS)
@settings(max_examples=200, deadline=None)
def test_counts_and_contents_follow_the_tokens(texts: list[str], unit: Any) -> None:
    sketches = sketch_column(pa.array(texts), SketchSettings(unit=unit))
    tokens = [reference.tokens(text, unit) for text in texts]
    assert sketches.counts.tolist() == [max(1, len(one) - 4) if one else 0 for one in tokens]
    assert blank_mask(pa.array(texts)).tolist() == [not one for one in tokens]
    for i, left in enumerate(tokens):
        for j, right in enumerate(tokens):
            assert (sketches.contents[i] == sketches.contents[j]) == (left == right)


def decide(operator: Any, params: Any, texts: list[str | None], order: list[int], cuts: int) -> dict[str, Any]:
    table = pa.table(
        {
            "_id": [f"{i:04d}" for i in range(len(texts))],
            "_ord": pa.array(range(len(texts)), pa.int64()),
            "text": pa.array(texts, pa.string()),
        }
    ).take(pa.array(order, pa.int64()))
    decided = operator.run([TableDataset.of(table, cuts)], params, Context("s")).collect().to_pylist()
    return {row["_id"]: row for row in decided}


@st.composite
def cases(draw: Any) -> tuple[list[str | None], list[int], int]:
    texts = draw(st.lists(st.one_of(WORDY, st.sampled_from(["", " ", None, "是是是们", "A b"])), max_size=14))
    return texts, draw(st.permutations(range(len(texts)))), draw(st.integers(1, 9))


PARAMS = st.builds(
    minhash.MinHashParams,
    threshold=st.sampled_from([0.3, 0.8, 1.0]),
    ngram=st.integers(1, 3),
    verify=st.sampled_from(["jaccard", "none"]),
    keep=st.sampled_from(["first", "longest"]),
    on_empty=st.sampled_from(["keep", "drop"]),
)


@given(cases(), PARAMS)
@settings(max_examples=80, deadline=None)
def test_minhash_is_a_function_of_the_rows_and_its_books_balance(
    case: tuple[list[str | None], list[int], int], params: minhash.MinHashParams
) -> None:
    texts, order, cuts = case
    found = decide(minhash, params, texts, order, cuts)
    assert found == decide(minhash, params, texts, list(range(len(texts))), 1)
    assert set(found) == {f"{i:04d}" for i in range(len(texts))}
    kept = {name for name, row in found.items() if row["fate"] in {None, "noted"}}
    sizes: dict[str, int] = {}
    for name, row in found.items():
        sizes[row["cluster_id"]] = sizes.get(row["cluster_id"], 0) + 1
        if row["fate"] == "merged":
            assert row["into"] in kept
            assert row["into"] == row["cluster_id"] != name
            assert params.verify == "none" or row["value"] >= params.threshold
        else:
            assert row["cluster_id"] == name
    assert all(row["cluster_size"] == sizes[row["cluster_id"]] for row in found.values())


@given(cases())
@settings(max_examples=60, deadline=None)
def test_equal_token_sequences_never_both_stay(case: tuple[list[str | None], list[int], int]) -> None:
    texts, order, cuts = case
    found = decide(minhash, minhash.MinHashParams(ngram=2), texts, order, cuts)
    staying = [reference.tokens(t, "auto") for i, t in enumerate(texts) if t and not found[f"{i:04d}"]["fate"]]
    assert len({tuple(tokens) for tokens in staying}) == len(staying)


@given(cases(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_exact_equals_a_dictionary(case: tuple[list[str | None], list[int], int], casefold: bool) -> None:
    texts, order, cuts = case
    found = decide(exact, exact.ExactParams(casefold=casefold), texts, order, cuts)
    first: dict[str, str] = {}
    for i, text in enumerate(texts):
        row = found[f"{i:04d}"]
        if text is None:
            assert row["fate"] is None
            continue
        leader = first.setdefault(exact.normalised(text, casefold=casefold), f"{i:04d}")
        assert row["into"] == (None if leader == row["_id"] else leader)
