"""Chains of filters that can keep nothing, whatever the rows are; found before a row is read."""

from collections.abc import Mapping, Sequence
from typing import Any

from datamill.errors import Issue
from datamill.workflows.plan import PlanStep

LANGUAGE_FILTER = "filter.lang"
RELABELS = ("lang.", "columns.")
"""Families that may write the label anew; behind them an earlier filter says nothing."""


def empty_warnings(steps: Sequence[PlanStep]) -> list[Issue]:
    """Warning `DM-PLAN-041` where a `filter.lang` keeps only languages that an earlier one has removed."""
    by_id = {step.id: step for step in steps}
    warnings = []
    for step in (step for step in steps if step.operator == LANGUAGE_FILTER):
        earlier = next((other for other in _filters_above(step, by_id) if _disjoint(other.params, step.params)), None)
        if earlier is not None:
            both = sorted({*earlier.params["allow"], *step.params["allow"]})
            message = (
                f"`{earlier.id}` keeps {_listed(earlier)} and `{step.id}` then keeps {_listed(step)}: "
                "nothing can be left"
            )
            fix = f"one step with allow: [{', '.join(both)}]"
            warnings.append(Issue("DM-PLAN-041", message, severity="warning", step=step.id, fix=fix))
    return warnings


def _filters_above(step: PlanStep, by_id: Mapping[str, PlanStep]) -> list[PlanStep]:
    """Language filters every row of `step` has passed under the same label, nearest first."""
    found = []
    here = step
    while len(here.needs) == 1 and here.needs[0] in by_id:
        here = by_id[here.needs[0]]
        if here.operator.startswith(RELABELS):
            break
        if here.operator == LANGUAGE_FILTER and here.params["column"] == step.params["column"]:
            found.append(here)
    return found


def _disjoint(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether no label can pass both; text of several languages passes two filters only if neither asks for all."""
    if set(first["allow"]) & set(second["allow"]):
        return False
    if any(first[name] == second[name] == "keep" for name in ("unknown", "on_null")):
        return False
    rules = {first["mixed"], second["mixed"]}
    return "all" in rules or rules == {"main"}


def _listed(step: PlanStep) -> str:
    return ", ".join(step.params["allow"])
