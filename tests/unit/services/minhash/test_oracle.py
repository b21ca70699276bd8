"""The datasketch backend and the fused kernel against each other and against datasketch's own classes."""

import numpy as np
import pyarrow as pa
import pytest

from datamill.services.minhash import reference
from datamill.services.minhash.oracle import new_minhash, shingle_bytes, sketch_with_datasketch
from datamill.services.minhash.settings import SketchSettings
from datamill.services.minhash.sketch import sketch_column

WIDE = SketchSettings(bands=256, rows=1, verify="none")


def variants(count: int, length: int) -> list[str]:
    generator = np.random.default_rng(length)
    words = [f"w{i}" for i in generator.integers(0, 5000, length)]
    texts = []
    for changes in range(count):
        changed = list(words)
        for place in generator.choice(length, changes, replace=False):
            changed[place] = f"x{generator.integers(1 << 30)}"
        texts.append(" ".join(changed))
    return texts


def test_minima_are_those_of_datasketch() -> None:
    from datasketch import MinHash

    settings = SketchSettings(bands=4, rows=8, verify="none", seed=3)
    sketches = sketch_with_datasketch(pa.array(["the quick brown fox jumps over it"]), settings)
    theirs = MinHash(num_perm=32, seed=3, hashfunc=new_minhash(settings).hashfunc)
    for shingle in shingle_bytes("the quick brown fox jumps over it", settings):
        theirs.update(shingle)
    assert sketches.signatures[0].tolist() == theirs.hashvalues.tolist()


def test_both_backends_estimate_the_same_similarities() -> None:
    texts = variants(12, 150)
    ours = sketch_column(pa.array(texts), WIDE, signatures=True).signatures
    theirs = sketch_with_datasketch(pa.array(texts), WIDE).signatures
    for other in range(1, len(texts)):
        exact = reference.jaccard(texts[0], texts[other], "words", 5)
        for minima in (ours, theirs):
            assert float((minima[0] == minima[other]).mean()) == pytest.approx(exact, abs=0.13)


def test_backends_agree_on_null_blank_and_content() -> None:
    column = pa.array([None, " ", "a b", "A  b", "你好", "e\u0301", "é"])
    ours, theirs = sketch_column(column, SketchSettings()), sketch_with_datasketch(column, SketchSettings())
    assert ours.counts.tolist() == theirs.counts.tolist() == [-1, 0, 1, 1, 1, 1, 1]
    for sketches in (ours, theirs):
        groups = [sketches.contents.tolist().index(c) for c in sketches.contents.tolist()]
        assert groups[3] == 2
        assert groups[6] == 5
        assert len(set(groups[2:])) == 3


def test_band_keys_meet_where_datasketch_finds_a_match() -> None:
    from datasketch import MinHashLSH

    settings = SketchSettings(bands=10, rows=4, verify="none")
    texts = variants(30, 60)
    keys = sketch_with_datasketch(pa.array(texts), settings).keys
    index = MinHashLSH(num_perm=40, params=(10, 4))
    sketches = []
    for i, text in enumerate(texts):
        sketch = new_minhash(settings)
        sketch.update_batch(shingle_bytes(text, settings))
        index.insert(i, sketch)
        sketches.append(sketch)
    found = 0
    for i in range(len(texts)):
        ours = set(np.flatnonzero((keys == keys[i]).any(axis=1)).tolist())
        assert ours == set(index.query(sketches[i]))
        found += len(ours) - 1
    assert 0 < found < 30 * 29


def test_detection_rates_of_both_follow_the_curve() -> None:
    settings = SketchSettings(bands=14, rows=8, verify="none", ngram=1)
    generator = np.random.default_rng(0)
    texts = []
    for pair in range(150):
        common = [f"c{pair}x{i}" for i in range(80)]
        for side in "ab":
            own = [f"{side}{pair}x{i}" for i in range(10)]
            texts.append(" ".join(generator.permutation(common + own)))
    for sketches in (sketch_column(pa.array(texts), settings), sketch_with_datasketch(pa.array(texts), settings)):
        met = (sketches.keys[0::2] == sketches.keys[1::2]).any(axis=1).mean()
        assert met == pytest.approx(0.92, abs=0.08)  # similarity exactly .8, 150 pairs
