"""Projections are reproducible from (seed, name, coordinate) alone and keep inner products as well as theory says."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from datamill.training.signals.projection import Rademacher, SparseJL, make_projection, random_words  # noqa: E402

pytestmark = pytest.mark.train

NAME = "layers.0.q_proj.lora_A.weight"
GOLDEN_WORDS = [957079630906950468, 975328082213920513, 7142503867403200117]
GOLDEN_PLACES = [212, 216, 1585]
GOLDEN_SIGNS = [-1.0, 1.0, 1.0]
GOLDEN_ROWS = [[-1, 1, -1, -1, 1, 1], [1, 1, 1, 1, 1, -1]]


def test_golden_vector() -> None:
    words = random_words(42, "sjlt", NAME, 0, 3)
    assert words.tolist() == GOLDEN_WORDS
    places, signs = SparseJL(4096, 42, nonzeros=1).entries(NAME, 3)
    assert places.ravel().tolist() == GOLDEN_PLACES
    assert signs.ravel().tolist() == GOLDEN_SIGNS
    places, signs = SparseJL(4096, 42, nonzeros=2).entries(NAME, 1)
    assert places.tolist() == [GOLDEN_PLACES[:2]]
    assert signs * np.sqrt(2) == pytest.approx(np.array([GOLDEN_SIGNS[:2]]))
    rows = Rademacher(6, 42).entries(NAME, 2, 4) * np.sqrt(6)
    assert rows.round().astype(int).tolist() == GOLDEN_ROWS


@pytest.mark.parametrize("start", [0, 1, 3, 4, 5, 17, 100])
def test_any_word_can_be_made_on_its_own(start: Any) -> None:
    whole = random_words(1, "sjlt", NAME, 0, 120)
    assert random_words(1, "sjlt", NAME, start, 7).tolist() == whole[start : start + 7].tolist()


def test_seed_name_and_method_each_change_the_stream() -> None:
    streams = {
        tuple(random_words(seed, method, name, 0, 2).tolist())
        for seed in (1, 2) for method in ("sjlt", "rademacher") for name in ("a", "b")
    }  # fmt: skip
    assert len(streams) == 8


def test_blocks_of_the_dense_matrix_fit_together() -> None:
    dense = Rademacher(100, 5)
    whole = dense.entries(NAME, 0, 9)
    parts = np.concatenate([dense.entries(NAME, 0, 4), dense.entries(NAME, 4, 9)])
    np.testing.assert_array_equal(whole, parts)
    assert set(np.unique(whole.round(6))) == {np.float32(-0.1), np.float32(0.1)}


@pytest.mark.parametrize("kind", [Rademacher, SparseJL, lambda d, s: SparseJL(d, s, nonzeros=1)])
def test_projection_is_the_explicit_matrix_product(kind: Any) -> None:
    projection = kind(32, 7)
    values = torch.randn(3, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    if isinstance(projection, Rademacher):
        matrix = projection.entries(NAME, 0, 50).astype(float)
    else:
        places, signs = projection.entries(NAME, 50)
        matrix = np.zeros((50, 32))
        for coordinate in range(50):
            np.add.at(matrix[coordinate], places[coordinate], signs[coordinate])
    np.testing.assert_allclose(projection.project(NAME, values), values.numpy() @ matrix, rtol=0, atol=2e-7)
    np.testing.assert_array_equal(projection.project(NAME, values), kind(32, 7).project(NAME, values))


@pytest.mark.parametrize("kind", [Rademacher, SparseJL])
def test_layers_add_up_to_the_projection_of_the_whole(kind: Any) -> None:
    sizes = {"a": 40, "b": 7, "c": 25}
    values = torch.randn(4, 72, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    projection = kind(16, 3)
    parts = dict(zip(sizes, values.split(list(sizes.values()), 1), strict=True))
    layerwise = sum(projection.project(name, part) for name, part in parts.items())
    backwards = sum(projection.project(name, parts[name]) for name in reversed(sizes))
    matrix = torch.cat([projection.project(n, torch.eye(s, dtype=torch.float64)) for n, s in sizes.items()])
    np.testing.assert_allclose(layerwise, values @ matrix, rtol=0, atol=1e-12)
    np.testing.assert_allclose(layerwise, backwards, rtol=0, atol=1e-12)


def test_batch_size_does_not_change_a_feature() -> None:
    projection = SparseJL(64, 9)
    values = torch.randn(8, 300, generator=torch.Generator().manual_seed(2))
    together = projection.project(NAME, values)
    alone = torch.cat([projection.project(NAME, values[i : i + 1]) for i in range(8)])
    torch.testing.assert_close(together, alone, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [Rademacher, SparseJL, lambda d, s: SparseJL(d, s, nonzeros=1)])
def test_inner_products_are_unbiased_with_the_variance_of_theory(kind: Any) -> None:
    """Golden example: <x, y> = 3 with standard deviation sqrt((25 * 5 + 9 - 2 * 9) / d)."""
    x, y, dim, trials = torch.tensor([3.0, 4, 0]), torch.tensor([1.0, 0, 2]), 64, 1500
    found = []
    for seed in range(trials):
        a, b = kind(dim, seed).project("w", torch.stack([x, y]))
        found.append(float(a @ b))
    deviation = np.sqrt((25 * 5 + 9 - 2 * 9) / dim)
    assert np.sqrt((25 * 5 + 9 - 2 * 9) / 8192) == pytest.approx(0.11899645)
    assert abs(np.mean(found) - 3) < 4 * deviation / np.sqrt(trials)
    assert 0.9 < np.std(found) / deviation < 1.1


@pytest.mark.parametrize("kind", [Rademacher, SparseJL])
def test_cosines_of_many_vectors_stay_within_the_bound(kind: Any) -> Any:
    dim, points = 2048, 40
    values = torch.randn(points, 6000, generator=torch.Generator().manual_seed(3))
    values[:, :50] *= 10  # a few heavy coordinates, as gradients have
    features = kind(dim, 0).project(NAME, values)

    def cosines(z: Any) -> Any:
        unit = z / z.norm(dim=1, keepdim=True)
        return (unit @ unit.T)[np.triu_indices(points, 1)]

    errors = (cosines(features) - cosines(values)).abs()
    assert float(errors.max()) < np.sqrt(8 * np.log(points) / dim)
    assert float(errors.square().mean().sqrt()) < 1.3 / np.sqrt(dim)


def test_nothing_is_projected_when_nothing_is_gained() -> None:
    assert make_projection("sjlt", 100, 0, 100) is None
    assert make_projection("none", 10, 0, 100) is None
    assert make_projection("auto", 10, 0, 100) is None
    assert isinstance(make_projection("sjlt", 99, 0, 100), SparseJL)
    assert make_projection("auto", 8192, 0, 1 << 26, directions=4) is None
    assert isinstance(make_projection("auto", 8192, 0, 1 << 26, directions=5), SparseJL)
    assert isinstance(make_projection("rademacher", 99, 0, 100), Rademacher)


def test_memory_for_kept_matrices_is_bounded(monkeypatch: Any) -> None:
    from datamill.training.signals import projection as module

    monkeypatch.setattr(module, "_CACHE_BYTES", 4000)
    projection = SparseJL(16, 0)
    values = torch.ones(1, 100)
    first = projection.project("a", values)
    for name in ("b", "c"):
        projection.project(name, values)
    assert len(projection._matrices) == 1
    assert torch.equal(projection.project("a", values), first)
    assert torch.equal(projection.project("c", values), SparseJL(16, 0).project("c", values))
