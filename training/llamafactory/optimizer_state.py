"""Reads Adam's moments by parameter name, whole, whatever engine shards them.

In one process and under DDP they lie in the optimizer; under DeepSpeed ZeRO they are gathered parameter by parameter,
a collective that every rank takes part in. Nothing is changed. Cost: two tensors of the trainable size.
"""

from collections.abc import Mapping
from typing import Any

from datamill.training.contracts import AdamMoments


def adam_moments(model: Any, optimizer: Any, steps: int, *, deepspeed: bool) -> dict[str, AdamMoments] | None:
    """Moments of the trainable parameters of `model`.

    Args:
        model: the unwrapped module.
        optimizer: the trainer's, wrapped by Accelerate or not.
        steps: optimizer steps done.
        deepspeed: the optimizer's state is sharded by DeepSpeed.

    Returns:
        By parameter name; None when the optimizer keeps no two moments (it is not of the Adam family).
    """
    inner = getattr(optimizer, "optimizer", optimizer)
    groups = _groups(inner)
    if not groups or not all("betas" in group for group in groups):
        return None
    settings = {id(parameter): group for group in groups for parameter in group["params"]}
    found = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            group = settings.get(id(parameter), groups[0])
            first, second = _sharded(parameter) if deepspeed else _plain(inner, parameter)
            beta1, beta2 = group["betas"]
            found[name] = AdamMoments(first, second, steps, float(beta1), float(beta2), float(group.get("eps", 1e-8)))
    return found


def _groups(optimizer: Any) -> list[Mapping[str, Any]]:
    return list(getattr(optimizer, "param_groups", []) or [])


def _plain(optimizer: Any, parameter: Any) -> tuple[Any, Any]:
    state = optimizer.state.get(parameter, {})
    return state.get("exp_avg"), state.get("exp_avg_sq")


def _sharded(parameter: Any) -> tuple[Any, Any]:
    from deepspeed.utils import safe_get_full_optimizer_state

    return tuple(safe_get_full_optimizer_state(parameter, key) for key in ("exp_avg", "exp_avg_sq"))
