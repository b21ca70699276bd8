"""Settings: the S-curve, shortened bands, permutations, and what identifies a sketch."""

import numpy as np
import pytest

from datamill.services.minhash.settings import (
    SketchSettings,
    detection_probability,
    permutations,
    suggest_banding,
)


@pytest.mark.parametrize(
    ("similarity", "bands", "rows", "expected"),
    [(0.75, 14, 8, 0.77), (0.80, 14, 8, 0.92), (0.85, 14, 8, 0.99), (0.8, 13, 60, 2.0e-5), (0.8, 60, 13, 0.966)],
)
def test_s_curve_against_published_figures(similarity: float, bands: int, rows: int, expected: float) -> None:
    assert detection_probability(similarity, bands, rows) == pytest.approx(expected, rel=0.01)


def test_s_curve_at_the_ends() -> None:
    assert detection_probability(1.0, 3, 5) == 1.0
    assert detection_probability(0.0, 3, 5) == 0.0
    assert detection_probability(1e-3, 14, 8) == pytest.approx(14e-24, rel=1e-6)


def test_s_curve_matches_a_simulation() -> None:
    generator = np.random.default_rng(5)
    agree = generator.random((20_000, 14, 8)) < 0.8
    assert agree.all(axis=2).any(axis=1).mean() == pytest.approx(detection_probability(0.8, 14, 8), abs=0.01)


def test_suggested_banding_detects_and_fits() -> None:
    for similarity, budget in [(0.8, 112), (0.5, 112), (0.95, 64), (0.8, 780)]:
        bands, rows = suggest_banding(similarity, budget)
        assert bands * rows <= budget
        assert detection_probability(similarity, bands, rows) >= 0.9
        assert detection_probability(similarity, budget // (rows + 1), rows + 1) < 0.9


def test_suggestion_falls_back_to_single_rows_when_nothing_reaches() -> None:
    assert suggest_banding(0.01, 4) == (4, 1)


@pytest.mark.parametrize(
    ("rows", "verify", "expected"), [(8, "jaccard", 6), (8, "none", 8), (2, "jaccard", 1), (1, "jaccard", 1)]
)
def test_rows_of_a_band_key(rows: int, verify: str, expected: int) -> None:
    assert SketchSettings(rows=rows, verify=verify).key_rows == expected  # type: ignore[arg-type]  # a Verify


def test_shortened_bands_are_prefixes_of_full_ones() -> None:
    full_a, full_b = permutations(7, 5, 8, 8)
    short_a, short_b = permutations(7, 5, 8, 6)
    assert np.array_equal(short_a.reshape(5, 6), full_a.reshape(5, 8)[:, :6])
    assert np.array_equal(short_b.reshape(5, 6), full_b.reshape(5, 8)[:, :6])


def test_multipliers_are_odd_distinct_and_follow_the_seed() -> None:
    a, b = SketchSettings(seed=3, verify="none").permutations()
    assert a.dtype == b.dtype == np.uint32
    assert len(a) == len(b) == 112
    assert (a & 1).all()
    assert len(set(a.tolist())) == 112
    again, _ = SketchSettings(seed=3, verify="none").permutations()
    other, _ = SketchSettings(seed=4, verify="none").permutations()
    assert np.array_equal(a, again)
    assert not np.array_equal(a, other)


def test_identity_names_everything_a_sketch_depends_on() -> None:
    identity = SketchSettings().identity()
    assert set(identity) == {
        "unit", "ngram", "bands", "rows", "seed", "verify", "backend", "num_perm", "normalisation", "version",
    }  # fmt: skip
    assert identity["num_perm"] == 112
    assert identity["normalisation"].startswith("nfc+simple_lower/unicode-")
