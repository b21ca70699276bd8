"""Where the wall time of a run went, in the words of people who tune one: start, read, compute, shuffle, ask, write."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from datamill.operators.declaration import Effect
from datamill.workflows.plan import Plan, PlanStep

if TYPE_CHECKING:
    from datamill.workflows.runner import StepResult

KINDS: Final = ("start", "read", "compute", "shuffle", "ask", "write")
"""Starting or joining the engine; inputs; batch steps; steps that see all rows, their decisions applied; calls to a
model; outputs, cards and registrations."""
SHOWN_SECONDS: Final = 0.05


def kind_of(step: PlanStep) -> str:
    """The kind of time a step takes."""
    if step.is_source:
        return "read"
    if step.bound == "llm":
        return "ask"
    return "shuffle" if step.effect in {Effect.GLOBAL, Effect.AGGREGATE, Effect.JOIN} else "compute"


def time_spent(plan: Plan, results: Mapping[str, "StepResult"], start_s: float, write_s: float) -> dict[str, float]:
    """Seconds by kind, in the order of `KINDS`; steps found finished take next to none."""
    spent = dict.fromkeys(KINDS, 0.0)
    for step in plan.steps:
        if step.id in results:
            spent[kind_of(step)] += results[step.id].seconds
    spent["start"] += start_s
    spent["write"] += write_s
    return {kind: round(seconds, 3) for kind, seconds in spent.items()}


def time_line(spent: Mapping[str, float]) -> str:
    """One line, the largest first; what took no time worth naming is left out."""
    parts = sorted(((kind, spent.get(kind, 0.0)) for kind in KINDS), key=lambda part: -part[1])
    return ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in parts if seconds >= SHOWN_SECONDS) or "next to none"
