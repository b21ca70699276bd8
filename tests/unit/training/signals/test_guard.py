"""The guard gives back modes, flags, gradients and generators, also when the pass fails."""

import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from datamill.training.signals.guard import scoring_guard  # noqa: E402

pytestmark = pytest.mark.train


class Layer(torch.nn.Module):
    def __init__(self, checkpointing: bool = False, **attributes: Any) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.drop = torch.nn.Dropout(0.5)
        self.gradient_checkpointing = checkpointing
        for name, value in attributes.items():
            setattr(self, name, value)


def test_inside_nothing_is_trained_or_dropped() -> None:
    layer = Layer().train()
    with scoring_guard(layer):
        assert not any(module.training for module in layer.modules())
        assert not any(parameter.requires_grad for parameter in layer.parameters())
        assert torch.equal(layer.drop(torch.ones(50)), torch.ones(50))
        assert torch.is_grad_enabled()
    assert all(module.training for module in layer.modules())
    assert all(parameter.requires_grad for parameter in layer.parameters())


def test_mixed_modes_and_flags_come_back_one_by_one() -> None:
    layer = Layer().train()
    layer.drop.eval()
    layer.linear.bias.requires_grad_(False)
    with scoring_guard(layer):
        pass
    assert [module.training for module in layer.modules()] == [True, True, False]
    assert [parameter.requires_grad for parameter in layer.parameters()] == [True, False]


def test_gradients_come_back_as_the_same_tensors() -> None:
    layer = Layer()
    layer.linear(torch.ones(1, 2)).sum().backward()
    gradients = [parameter.grad for parameter in layer.parameters()]
    copies = [gradient.clone() for gradient in gradients]
    with scoring_guard(layer):
        layer.linear.weight.grad = None
        layer.linear.bias.grad = torch.full((2,), 9.0)
    for parameter, gradient, copy in zip(layer.parameters(), gradients, copies, strict=True):
        assert parameter.grad is gradient
        assert torch.equal(gradient, copy)


def draws() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(()))


def test_generators_go_on_as_if_nothing_had_been_drawn() -> None:
    layer = Layer()
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    expected = draws()
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
    with scoring_guard(layer):
        inside = draws()
        draws()
    assert draws() == expected
    assert inside == expected, "a pass sees the state it began with"


def test_a_failing_pass_is_undone_too() -> None:
    layer = Layer().train()
    state = torch.get_rng_state()

    def fail() -> None:
        torch.rand(3)
        layer.linear.weight.grad = torch.ones(2, 2)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), scoring_guard(layer):
        fail()
    assert layer.training
    assert layer.linear.weight.grad is None
    assert layer.linear.weight.requires_grad
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("attributes", "kept"),
    [({}, True), ({"dropout": 0.0}, True), ({"dropout": 0.1}, False), ({"resid_pdrop": 0.1}, False)],
)
def test_only_layers_without_a_dropout_of_their_own_keep_checkpointing(
    attributes: dict[str, float], kept: bool
) -> None:
    layer = Layer(checkpointing=True, **attributes).train()
    with scoring_guard(layer):
        assert layer.training is kept
        assert not layer.drop.training


def test_a_layer_in_evaluation_stays_there() -> None:
    layer = Layer(checkpointing=True).eval()
    with scoring_guard(layer):
        assert not layer.training
