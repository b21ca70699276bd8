"""The Adam feature is the step a real optimizer would take; other tools' forms on request."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from datamill.errors import DatamillError  # noqa: E402
from datamill.training.contracts import AdamMoments  # noqa: E402
from datamill.training.signals.adam_features import adam_feature  # noqa: E402

pytestmark = pytest.mark.train

M, V, G = ([0.1, -0.2, 0.0], [0.04, 0.01, 0.0], [1.0, 0.5, 1e-4])


def moments(step: Any = 9, v: Any = V) -> Any:
    return AdamMoments(torch.tensor(M, dtype=torch.float64), torch.tensor(v, dtype=torch.float64), step)


def feature(compat: Any, **changes: Any) -> Any:
    gradient = torch.tensor([G], dtype=torch.float64)
    return adam_feature(gradient, moments(**changes), "w", compat)[0].tolist()


@pytest.mark.parametrize(
    ("compat", "golden"),
    [
        ("dataflex", [0.93880113, -1.28467517, 3.15230918]),
        ("official", [0.93880107, -1.28467467, 0.09995004]),
    ],
)
def test_golden_forms_of_other_tools(compat: Any, golden: Any) -> None:
    assert feature(compat) == pytest.approx(golden, abs=1e-6)


def test_golden_form_of_the_paper_masks_a_coordinate_never_touched() -> None:
    assert feature("none") == pytest.approx([0.14381408, -0.19679822, 0.0], abs=1e-7)
    barely = feature("none", v=[0.04, 0.01, 1e-300])
    assert barely == pytest.approx([0.14381408, -0.19679822, 0.48427359], abs=1e-7)


def test_a_real_optimizer_moves_by_the_feature() -> None:
    weight = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
    optimizer = torch.optim.Adam([weight], lr=0.01)
    optimizer.state[weight] = {
        "step": torch.tensor(9.0), "exp_avg": torch.tensor(M, dtype=torch.float64),
        "exp_avg_sq": torch.tensor([0.04, 0.01, 1e-300], dtype=torch.float64),
    }  # fmt: skip
    weight.grad = torch.tensor(G, dtype=torch.float64)
    optimizer.step()
    np.testing.assert_allclose(weight.detach(), -0.01 * np.array(feature("none", v=[0.04, 0.01, 1e-300])), rtol=1e-12)


def test_samples_are_mapped_independently_and_the_gradient_is_left_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    gradients = torch.randn(5, 4, 3, generator=generator)
    state = AdamMoments(
        torch.randn(4, 3, generator=generator), torch.rand(4, 3, generator=generator), 3, 0.8, 0.95, 1e-6
    )
    before = gradients.clone(), state.exp_avg.clone(), state.exp_avg_sq.clone()
    together = adam_feature(gradients, state, "w")
    alone = torch.cat([adam_feature(gradients[i : i + 1], state, "w") for i in range(5)])
    assert torch.equal(together, alone)
    assert torch.equal(gradients, before[0])
    assert torch.equal(state.exp_avg, before[1])
    assert torch.equal(state.exp_avg_sq, before[2])


@pytest.mark.parametrize(
    "bad",
    [
        AdamMoments(None, None, 0),
        AdamMoments(torch.zeros(3), torch.zeros(3), 0),
        AdamMoments(torch.zeros(6), torch.zeros(6), 4),
    ],
)
def test_missing_or_sharded_moments_are_refused(bad: Any) -> None:
    with pytest.raises(DatamillError, match=r"DM-SIG-104.*`layer\.weight`"):
        adam_feature(torch.zeros(2, 3), bad, "layer.weight")
