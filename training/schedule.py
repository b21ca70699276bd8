"""How many optimizer steps a run takes, and at which of them a plan begins.

Rules, first match wins: `train_step`; LLaMA-Factory's own `max_steps`; for dynamic selection `warmup_step +
update_step * update_times`, times `num_train_epochs` where that was written; otherwise `num_train_epochs` over the
rows, as LLaMA-Factory counts: micro-batches of an epoch are ceil(ceil(rows / batch) / processes), updates are
ceil(micro-batches / accumulation), the last of an epoch being smaller. Pure arithmetic.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from datamill.training.section import DynamicSection

LLAMAFACTORY_EPOCHS: Final = 3.0
"""`num_train_epochs` of LLaMA-Factory when nobody writes one."""


@dataclass(frozen=True, slots=True)
class StepRule:
    """Length of a run.

    Attributes:
        total: optimizer steps, or None when it follows from the number of rows.
        rule: the sentence a dry run prints.
    """

    total: int | None
    rule: str


@dataclass(frozen=True, slots=True)
class Span:
    """Steps `start` to `end` (exclusive) served by one plan; `update` counts selections, -1 for natural order."""

    start: int
    end: int
    update: int
    kind: Literal["natural", "selected"]


def step_rule(section: DynamicSection | None, llamafactory: Mapping[str, Any]) -> StepRule:
    """The rule that fixes the length of the run."""
    if section is not None and section.train_step is not None and section.train_step > 0:
        return StepRule(section.train_step, f"train_step: {section.train_step} steps")
    if int(llamafactory.get("max_steps") or -1) > 0:
        steps = int(llamafactory["max_steps"])
        return StepRule(steps, f"max_steps of LLaMA-Factory: {steps} steps")
    if section is None or section.train_type != "dynamic_select":
        return StepRule(None, f"num_train_epochs over the rows: {epochs(llamafactory):g} epochs")
    budget = section.warmup_step + section.update_step * section.update_times
    parts = (
        f"warmup_step {section.warmup_step} + update_step {section.update_step} x update_times {section.update_times}"
    )
    written = llamafactory.get("num_train_epochs")
    factor = 1.0 if written is None else float(written)
    times = "" if factor == 1 else f", times num_train_epochs {factor:g}"
    return StepRule(math.ceil(budget * factor), f"{parts}{times}: {math.ceil(budget * factor)} steps")


def epochs(llamafactory: Mapping[str, Any]) -> float:
    """`num_train_epochs` as LLaMA-Factory will read it."""
    written = llamafactory.get("num_train_epochs")
    return LLAMAFACTORY_EPOCHS if written is None else float(written)


def updates_per_epoch(rows: int, batch: int, accumulation: int, processes: int) -> int:
    """Optimizer steps of one pass over `rows` rows; the last one may be smaller, none is left out.

    Raises:
        ValueError: for an argument below 1.
    """
    if min(rows, batch, accumulation, processes) < 1:
        raise ValueError("rows, batch, accumulation and processes are at least 1")
    micro_batches = math.ceil(math.ceil(rows / batch) / processes)
    return math.ceil(micro_batches / accumulation)


def total_steps(section: DynamicSection | None, llamafactory: Mapping[str, Any], rows: int, processes: int) -> int:
    """Optimizer steps of the whole run."""
    fixed = step_rule(section, llamafactory).total
    if fixed is not None:
        return fixed
    batch = int(llamafactory.get("per_device_train_batch_size") or 8)
    accumulation = int(llamafactory.get("gradient_accumulation_steps") or 1)
    return math.ceil(epochs(llamafactory) * updates_per_epoch(rows, batch, accumulation, processes))


def span_at(section: DynamicSection, step: int, epoch_steps: int, total: int) -> Span:
    """The plan that serves `step`.

    Args:
        section: what the user asked for.
        step: optimizer steps done.
        epoch_steps: optimizer steps of one epoch of the stock loop.
        total: steps of the run.
    """
    if section.train_type != "dynamic_select":
        start = step // epoch_steps * epoch_steps
        return Span(start, min(start + epoch_steps, total), -1, "natural")
    if step < section.warmup_step:
        return Span(0, min(section.warmup_step, total), -1, "natural")
    update = (step - section.warmup_step) // section.update_step
    start = section.warmup_step + update * section.update_step
    return Span(start, min(start + section.update_step, total), update, "selected")


def selections(section: DynamicSection, total: int) -> int:
    """Plans a run of `total` steps selects."""
    if section.train_type != "dynamic_select" or total <= section.warmup_step:
        return 0
    return math.ceil((total - section.warmup_step) / section.update_step)


def window_sizes(start: int, end: int, micro_batches: int, accumulation: int) -> list[int]:
    """Micro-batches of each optimizer step from `start` to `end` as the stock loop asks for them.

    Args:
        start: first step.
        end: step after the last.
        micro_batches: length of the stock loader of one process.
        accumulation: `gradient_accumulation_steps`.
    """
    per_epoch = max(math.ceil(micro_batches / accumulation), 1)
    last = micro_batches % accumulation or accumulation
    return [last if step % per_epoch == per_epoch - 1 else accumulation for step in range(start, end)]
