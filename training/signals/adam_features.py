"""The step Adam would take for one sample: the training feature of LESS (Xia et al., ICML 2024, arXiv 2402.04333).

With the optimizer's moments m, v after t steps and the sample's gradient g,

    m' = b1 m + (1 - b1) g,   v' = b2 v + (1 - b2) g^2,
    feature = (m' / (1 - b1^(t+1))) / (sqrt(v' / (1 - b2^(t+1))) + eps),

which is what `torch.optim.Adam` would move by, over the learning rate. The map is coordinate-wise, hence exact layer by
layer. A coordinate whose v is still zero has never had a gradient: its feature would be as large as Adam allows for
any g however small, so it is masked.
"""

from typing import Literal

import torch

from datamill.errors import DatamillError
from datamill.training.contracts import AdamMoments

Compat = Literal["none", "official", "dataflex"]
"""`none`: the paper's form. `official`: princeton-nlp/LESS (eps inside the root, no bias correction). `dataflex`:
DataFlex 1.1.0 (eps outside, no bias correction). Neither of the latter masks."""


def adam_feature(gradient: torch.Tensor, moments: AdamMoments, name: str, compat: Compat = "none") -> torch.Tensor:
    """Adam's step for each sample's gradient of one parameter.

    Args:
        gradient: (samples, *shape) gradients of the parameter; left as it is.
        moments: whole state of that parameter after at least one step.
        name: the parameter, for the message.
        compat: whose form.

    Returns:
        (samples, *shape) in the gradient's type.

    Raises:
        DatamillError: `DM-SIG-104` when there are no moments or their shape differs.
    """
    if moments.exp_avg is None or moments.exp_avg_sq is None or moments.step < 1:
        raise missing_moments(name)
    mean = moments.exp_avg.to(gradient)
    square = moments.exp_avg_sq.to(gradient)
    if mean.shape != gradient.shape[1:]:
        raise DatamillError(
            "DM-SIG-104",
            f"optimizer state of `{name}` has shape {tuple(mean.shape)}, the parameter {tuple(gradient.shape[1:])}",
            fix="gather the sharded state before scoring",
        )
    return _map(gradient, mean, square, moments, compat)


def _map(
    gradient: torch.Tensor, mean: torch.Tensor, square: torch.Tensor, moments: AdamMoments, compat: Compat
) -> torch.Tensor:
    first, second, root_eps, eps = 1.0, 1.0, 0.0, moments.eps
    if compat == "none":
        first = 1 - moments.beta1 ** (moments.step + 1)
        second = 1 - moments.beta2 ** (moments.step + 1)
    elif compat == "official":
        root_eps, eps = moments.eps, 0.0
    denominator = torch.addcmul(
        (square * (moments.beta2 / second)).expand_as(gradient), gradient, gradient, value=(1 - moments.beta2) / second
    )
    if root_eps:
        denominator.add_(root_eps)
    denominator.sqrt_().add_(eps)
    step = torch.add(mean * (moments.beta1 / first), gradient, alpha=(1 - moments.beta1) / first).div_(denominator)
    return step.mul_((square > 0).to(gradient)) if compat == "none" else step


def missing_moments(name: str) -> DatamillError:
    """The error for a parameter without Adam state."""
    return DatamillError(
        "DM-SIG-104",
        f"there is no Adam state for `{name}`",
        expected="at least one optimizer step with Adam or AdamW before the first selection",
        fix="warmup_step of 1 or more (50 or more is advisable), or gradient_type: sgd",
    )
