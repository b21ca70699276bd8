"""Exact gradients of every sample of a batch from one batched pass, layer by layer.

A linear map with input x_t and output gradient e_t has the gradient G_s = sum over the tokens of sample s of
e_t x_t^T (Goodfellow 2015, arXiv 1510.01799; Opacus), so a batched backward pass already holds every sample's
gradient. An identity autograd function on the output of each trainable linear layer keeps x, receives e, and hands
G_s on at once: memory is one layer's gradients, the cost that of an ordinary weight gradient. The pass differentiates
with respect to the output of the embedding, upstream of every probe, while no parameter requires a gradient: nothing
is accumulated or reduced, so under data parallelism, sharded or not, each rank gets the gradients of its own rows.

Activations travel through saved tensors, hence both kinds of gradient checkpointing give the same numbers. Sums are
in float32 at least. Trainable parameters that are not weights or biases of `nn.Linear`, and layers used more than once
in a pass, are refused by name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from datamill.errors import DatamillError, ExitCode
from datamill.training.signals.loss import forward_losses, membership

Receive = Callable[[str, torch.Tensor], None]
"""Called with a parameter's name and its (samples, *shape) gradients, each parameter once."""


class _Probe(torch.autograd.Function):  # type: ignore[misc]  # torch is not followed by the type checker
    """The identity on a layer's output that sees the layer's input and the gradient of its output."""

    @staticmethod
    def forward(ctx: Any, output: torch.Tensor, inputs: torch.Tensor, deliver: Callable[..., None]) -> torch.Tensor:
        ctx.save_for_backward(inputs)
        ctx.deliver = deliver
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (inputs,) = ctx.saved_tensors
        ctx.deliver(inputs, gradients[0])
        return gradients[0], None, None


def trainable_linears(model: nn.Module, trainable: Sequence[str] | None = None) -> dict[str, nn.Linear]:
    """The layers whose per-sample gradients can be formed, by name.

    Args:
        model: the unwrapped model.
        trainable: names of the trainable parameters; those that require a gradient when None.

    Raises:
        DatamillError: `DM-SIG-102` naming every trainable parameter that is no weight or bias of an `nn.Linear`, or
            that two modules share; `DM-SIG-107` when nothing is trainable.
    """
    wanted = set(trainable_names(model) if trainable is None else trainable)
    layers = {
        name: module
        for name, module in model.named_modules()
        if type(module) is nn.Linear and wanted & {f"{name}.weight", f"{name}.bias"}
    }
    covered = {f"{name}.{part}" for name in layers for part in ("weight", "bias")}
    refused = sorted((wanted - covered) | _shared(model, wanted))
    if refused:
        raise DatamillError(
            "DM-SIG-102",
            f"per-sample gradients cannot be formed for {len(refused)} trainable parameters: {', '.join(refused[:8])}"
            + (", ..." if len(refused) > 8 else ""),
            exit_code=ExitCode.INVALID,
            expected="LoRA on linear layers, or full training of linear layers that are not shared",
            fix="finetuning_type: lora, with lora_target naming linear layers only and no additional_target",
            context={"parameters": refused},
        )
    if not layers:
        raise DatamillError("DM-SIG-107", "no parameter is trainable, so there are no gradients to compare")
    return layers


def trainable_names(model: nn.Module) -> tuple[str, ...]:
    """Names of the parameters that require a gradient."""
    return tuple(name for name, parameter in model.named_parameters() if parameter.requires_grad)


def _shared(model: nn.Module, wanted: set[str]) -> set[str]:
    owners: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners.setdefault(id(parameter), []).append(name)
    return {name for names in owners.values() if len(names) > 1 and wanted.intersection(names) for name in names}


def per_sample_gradients(
    model: Any, trainable: Sequence[str], batch: Mapping[str, Any], receive: Receive
) -> torch.Tensor:
    """Run one batch forward and backward and hand over each trainable parameter's gradients by sample.

    Call it inside `scoring_guard`, which clears every `requires_grad`; `trainable` says which parameters had it.

    Args:
        model: the unwrapped model.
        trainable: names of the parameters to form gradients of.
        batch: as `ScoringRows.collate` returns it.
        receive: gets `(name, gradients)` with gradients of shape (samples, *parameter shape) in float32 or float64;
            samples are ordered row by row, within a packed row by segment. Gradients are of each sample's mean loss.

    Returns:
        (samples,) mean losses, NaN for a sample without supervised tokens (its gradients are zero).

    Raises:
        DatamillError: `DM-SIG-102` for a layer that runs twice in a pass or does not see whole rows.
    """
    delivery = _Delivery(set(trainable), batch, receive)
    with ExitStack() as hooks:
        hooks.enter_context(_differentiable_embeddings(model))
        for name, layer in trainable_linears(model, trainable).items():
            hooks.enter_context(_probe(name, layer, delivery))
        losses = forward_losses(model, batch)
        total = losses.nan_to_num(nan=0.0).sum() if losses.isnan().any() else losses.sum()
        total.backward()
    return losses.detach()


class _Delivery:
    """Turns one layer's inputs and output gradients into per-sample gradients and passes them on."""

    def __init__(self, trainable: set[str], batch: Mapping[str, Any], receive: Receive) -> None:
        self.trainable = trainable
        self.receive = receive
        self.rows = len(batch["labels"])
        self.members = membership(batch["segments"]) if "segments" in batch else None
        self.seen: set[str] = set()

    def __call__(self, layer: str, inputs: torch.Tensor, output_gradient: torch.Tensor) -> None:
        if layer in self.seen:
            raise _refusal(layer, "runs more than once in a forward pass")
        self.seen.add(layer)
        if inputs.dim() != 3 or len(inputs) != self.rows:
            raise _refusal(
                layer, f"sees inputs of shape {tuple(inputs.shape)}, not whole rows (rows, tokens, features)"
            )
        accumulator = torch.promote_types(output_gradient.dtype, torch.float32)
        precise = inputs.to(accumulator), output_gradient.to(accumulator)
        if f"{layer}.weight" in self.trainable:
            self.receive(f"{layer}.weight", weight_gradients(*precise, self.members))
        if f"{layer}.bias" in self.trainable:
            self.receive(f"{layer}.bias", _by_sample(precise[1], self.members).sum(1))


def weight_gradients(
    inputs: torch.Tensor, output_gradients: torch.Tensor, members: torch.Tensor | None = None
) -> torch.Tensor:
    """Sum over each sample's tokens of the outer product of output gradient and input.

    Args:
        inputs: (rows, tokens, i).
        output_gradients: (rows, tokens, o).
        members: (rows, k, tokens) true where a token belongs to the row's k-th sample; None for one sample a row.

    Returns:
        (samples, o, i) with samples ordered row by row.
    """
    repeated = inputs if members is None else inputs.repeat_interleave(members.shape[1], dim=0)
    return torch.bmm(_by_sample(output_gradients, members).transpose(1, 2), repeated)


def _by_sample(gradients: torch.Tensor, members: torch.Tensor | None) -> torch.Tensor:
    """(samples, tokens, o): a packed row is copied once per sample, with the other samples' tokens at zero."""
    if members is None:
        return gradients
    return (gradients[:, None] * members[..., None].to(gradients.dtype)).flatten(0, 1)


def _refusal(layer: str, what: str) -> DatamillError:
    return DatamillError(
        "DM-SIG-102",
        f"per-sample gradients cannot be formed for `{layer}`, which {what}",
        exit_code=ExitCode.INVALID,
        fix="leave this layer out of lora_target",
    )


@contextmanager
def _probe(name: str, layer: nn.Linear, delivery: _Delivery) -> Iterator[None]:
    def deliver(inputs: torch.Tensor, gradient: torch.Tensor) -> None:
        delivery(name, inputs.detach(), gradient.detach())

    def attach(_module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:
        return _Probe.apply(output, inputs[0], deliver) if output.requires_grad else output

    handle = layer.register_forward_hook(attach)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _differentiable_embeddings(model: Any) -> Iterator[None]:
    def detach(_module: nn.Module, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
        return output.detach().requires_grad_(True)

    handle = model.get_input_embeddings().register_forward_hook(detach)
    try:
        yield
    finally:
        handle.remove()
