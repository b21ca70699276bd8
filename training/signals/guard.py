"""A scoring pass leaves no trace: modes, flags, gradients and every random state come back bit for bit.

Inside the guard the model is in evaluation mode (no dropout: a score is not a random number) and no parameter requires
a gradient, so that a backward pass creates none and no data-parallel engine has anything to reduce. Layers that
checkpoint activations keep doing so, unless they hold a dropout of their own.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

_DROPOUTS = ("dropout", "attention_dropout", "hidden_dropout", "activation_dropout", "resid_pdrop")


@contextmanager
def scoring_guard(model: nn.Module) -> Iterator[None]:
    """Run a scoring pass on `model` and restore everything it could have touched.

    Restored: training flag of every module, `requires_grad` and `.grad` (the same tensor object) of every parameter,
    and the states of Python's, numpy's, torch's CPU and every CUDA generator. Parameters, buffers and optimizer state
    are only read. The state is restored when the pass raises, too.
    """
    modes = [(module, module.training) for module in model.modules()]
    parameters = [(parameter, parameter.requires_grad, parameter.grad) for parameter in model.parameters()]
    generators = _generator_states()
    try:
        model.eval()
        for module, training in modes:
            module.training = training and _checkpoints_without_dropout(module)
        for parameter, _, _ in parameters:
            parameter.requires_grad_(False)
        with torch.enable_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training
        for parameter, flag, gradient in parameters:
            parameter.requires_grad_(flag)
            if parameter.grad is not gradient:
                parameter.grad = gradient
        _restore_generators(generators)


def _checkpoints_without_dropout(module: nn.Module) -> bool:
    if not getattr(module, "gradient_checkpointing", False):
        return False
    rates = (getattr(module, name, 0.0) for name in _DROPOUTS)
    return not any(isinstance(rate, float) and rate > 0 for rate in rates)


def _generator_states() -> tuple[Any, ...]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
    return random.getstate(), np.random.get_state(), torch.get_rng_state(), cuda


def _restore_generators(states: tuple[Any, ...]) -> None:
    python, numpy, cpu, cuda = states
    random.setstate(python)
    np.random.set_state(numpy)
    torch.set_rng_state(cpu)
    if cuda is not None:
        torch.cuda.set_rng_state_all(cuda)
