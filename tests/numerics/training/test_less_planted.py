"""Planted truth for LESS on softmax regression, with a random baseline and permuted scores as controls.

A third of the pool is relevant to the target, a third lies in other features, a third is relevant with random labels
(Xia et al. 2024 claim that the first kind is found). Features, similarities and plan come from the product's code.
"""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from datamill.training.contracts import AdamMoments, SelectionState, SignalTable  # noqa: E402
from datamill.training.registry import build_selector  # noqa: E402
from datamill.training.signals.adam_features import adam_feature  # noqa: E402
from datamill.training.signals.grad_similarity import Cosines, GroupSums  # noqa: E402
from datamill.training.signals.projection import Rademacher, SparseJL  # noqa: E402

pytestmark = pytest.mark.train

FEATURES, CLASSES, POOL, TARGETS, STEPS = 40, 4, 1200, 64, 30
TRIALS = 5


def draw(rng: Any, truth: Any, count: Any, *, relevant: Any, noisy: Any = False) -> Any:
    inputs = np.zeros((count, FEATURES))
    inputs[:, slice(0, 20) if relevant else slice(20, 40)] = rng.normal(size=(count, 20))
    right = (inputs @ truth).argmax(1)
    return inputs, rng.integers(0, CLASSES, count) if noisy else right, right


def gradients(weight: Any, inputs: Any, labels: Any) -> Any:
    probability = (inputs @ weight).softmax(1)
    residual = probability - torch.nn.functional.one_hot(labels, CLASSES)
    return torch.einsum("ni,nj->nij", inputs, residual)


def scene(rng: Any, truth: Any) -> Any:
    """Pool, targets and Adam's moments after a warm-up on random batches."""
    third = POOL // 3
    kinds = [draw(rng, truth, third, relevant=True), draw(rng, truth, third, relevant=False),
             draw(rng, truth, third, relevant=True, noisy=True)]  # fmt: skip
    inputs, labels, right = (torch.from_numpy(np.concatenate(part)) for part in zip(*kinds, strict=True))
    goal = [torch.from_numpy(part) for part in draw(rng, truth, TARGETS, relevant=True)[:2]]
    weight = torch.zeros(FEATURES, CLASSES, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.05)
    for _ in range(STEPS):
        batch = torch.from_numpy(rng.integers(0, POOL, 64))
        weight.grad = gradients(weight.detach(), inputs[batch], labels[batch]).mean(0)
        optimizer.step()
    state = optimizer.state[weight]
    moments = AdamMoments(state["exp_avg"], state["exp_avg_sq"], STEPS)
    weight = weight.detach()
    return gradients(weight, inputs, labels), gradients(weight, *goal), moments, (labels != right).numpy()


def similarities(pool: Any, goal: Any, moments: Any, projection: Any = None) -> Any:
    sums = GroupSums(1)
    sums.members([0] * TARGETS)
    features, goal = adam_feature(pool, moments, "w").flatten(1), goal.flatten(1)
    if projection is not None:
        features, goal = projection.project("w", features), projection.project("w", goal)
    sums.add("w", goal)
    cosines = Cosines(sums.directions(None, unit=True), {})
    cosines.add("w", features)
    return SignalTable("grad_similarity", np.arange(POOL), cosines.values(torch.zeros(POOL)))


def shares(ids: Any, wrong: Any) -> Any:
    """Share of irrelevant rows and of wrongly labelled rows among the chosen."""
    return np.isin(ids // (POOL // 3), [1]).mean(), wrong[ids].mean()


def decide(name: Any, table: Any) -> Any:
    selector = build_selector(name)
    return selector.select(
        {table.key: table}, POOL // 6, SelectionState(table.ids, step=STEPS), np.random.default_rng(0)
    )


@pytest.fixture(scope="module")
def scenes() -> Any:
    """Five trials with one labelling function, as in the simulation the thresholds were measured with."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(FEATURES, CLASSES))
    return [scene(rng, truth) for _ in range(TRIALS)]


def test_less_leaves_out_irrelevant_and_mislabelled_rows(scenes: Any) -> None:
    for pool, goal, moments, wrong in scenes:
        irrelevant, mislabelled = shares(decide("less", similarities(pool, goal, moments)).ids, wrong)
        assert irrelevant <= 0.02
        assert mislabelled <= 0.20
        assert wrong.mean() > 0.22, "the pool must hold what is to be avoided"


def test_random_choice_does_not(scenes: Any) -> None:
    for pool, goal, moments, wrong in scenes:
        irrelevant, mislabelled = shares(decide("random", similarities(pool, goal, moments)).ids, wrong)
        assert 0.23 < irrelevant < 0.43
        assert mislabelled > 0.15


def test_permuted_scores_do_not_either(scenes: Any) -> None:
    for seed, (pool, goal, moments, wrong) in enumerate(scenes):
        table = similarities(pool, goal, moments)
        mixed = SignalTable(table.key, table.ids, np.random.default_rng(seed).permutation(table.values))
        irrelevant, _ = shares(decide("less", mixed).ids, wrong)
        assert 0.23 < irrelevant < 0.43


def test_an_off_topic_target_turns_the_choice_round(scenes: Any) -> None:
    pool, _, moments, wrong = scenes[0]
    other = pool[POOL // 3 : POOL // 3 + TARGETS]
    irrelevant, _ = shares(decide("less", similarities(pool, other, moments)).ids, wrong)
    assert irrelevant >= 0.8


def test_on_average_mislabelled_rows_are_left_out_whatever_the_labelling_function() -> None:
    """A single labelling function may be unlucky (.29 was seen); over twelve the share stays below that of the pool."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        pool, goal, moments, wrong = scene(rng, rng.normal(size=(FEATURES, CLASSES)))
        irrelevant, mislabelled = shares(decide("less", similarities(pool, goal, moments)).ids, wrong)
        assert irrelevant <= 0.02
        found.append(mislabelled - wrong.mean())
    assert np.mean(found) < -0.05


@pytest.mark.parametrize(("dim", "overlap"), [(512, 0.75), (8192, 0.925)])
def test_projection_keeps_as_much_of_the_choice_as_dense_signs(scenes: Any, dim: Any, overlap: Any) -> None:
    """Here p = 160. Measured over the trials for dense signs: mean .83 at 512, .955 at 8192."""
    kept = {SparseJL: [], Rademacher: []}
    for pool, goal, moments, _ in scenes:
        exact = set(decide("less", similarities(pool, goal, moments)).ids.tolist())
        for kind, found in kept.items():
            chosen = decide("less", similarities(pool, goal, moments, kind(dim, 0))).ids
            found.append(len(exact & set(chosen.tolist())) / len(exact))
    assert np.mean(kept[SparseJL]) >= overlap
    assert abs(np.mean(kept[SparseJL]) - np.mean(kept[Rademacher])) < 0.05
