"""Steps that call a language model: what they need before work starts, what they may spend, what they used.

A run without an endpoint stops before anything is made (exit 6); a run whose expected cost passes its budget stops
there too (exit 7), whoever approved the plan. Accepted replies are cached in the project, so a run that is killed or
run again asks only for what is missing; limits and spending are kept in the run's folder and survive a resume.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datamill.errors import DatamillError, ExitCode, Issue
from datamill.operators.declaration import Bound
from datamill.services.llm.budget import Prices
from datamill.services.llm.config import has_endpoint, worker_settings
from datamill.services.llm.usage import read_usage
from datamill.settings import LLMSettings, Settings, resolve
from datamill.workflows.estimate import Estimate, estimate_plan
from datamill.workflows.paths import STATE_FOLDER
from datamill.workflows.plan import Plan, PlanStep

CACHE = "llm_cache"
STATE = "llm"


def llm_steps(plan: Plan) -> tuple[PlanStep, ...]:
    """Steps of the plan that call a language model."""
    return tuple(step for step in plan.steps if step.bound == Bound.LLM.value)


def prices_of(settings: LLMSettings) -> Prices:
    """What tokens cost."""
    return Prices(settings.usd_per_million_input, settings.usd_per_million_output)


def budget_of(plan: Plan, settings: Settings, given: float | None = None) -> float:
    """Dollars a run of `plan` may spend: what the person gave, else the larger of the plan's and the settings'."""
    return given if given is not None else max(plan.run.budget.llm_usd, settings.run.budget_usd)


def check_llm(plan: Plan, project: Path, allow_paths: tuple[str, ...] = (), given: float | None = None) -> None:
    """Check that the LLM steps of a plan can run and may cost what they are expected to.

    Args:
        plan: the plan about to run.
        project: project folder.
        allow_paths: further paths that may be read, for the estimate.
        given: dollars the person allowed for this run.

    Raises:
        DatamillError: `DM-LLM-012` (exit 6) without endpoint or model, `DM-LLM-013` (exit 7) when the estimate passes
            the budget.
    """
    steps = llm_steps(plan)
    if not steps:
        return
    settings = resolve(project).settings
    require_endpoint(steps, settings.llm)
    prices = prices_of(settings.llm)
    if prices == Prices():
        return
    check_budget(plan, estimate_plan(plan, project, allow_paths, prices), settings, given)


def require_endpoint(steps: tuple[PlanStep, ...], settings: LLMSettings, env: Mapping[str, str] | None = None) -> None:
    """Raise `DM-LLM-012` for every step that has nowhere to send its requests."""
    issues = []
    reachable = has_endpoint(settings, os.environ if env is None else env)
    for step in steps:
        if reachable and (settings.model or step.params.get("model")):
            continue
        what = "no model is configured" if reachable else "no LLM endpoint is configured"
        fix = "set llm.model in datamill.toml" if reachable else "export OPENAI_BASE_URL=... OPENAI_API_KEY=..."
        message = f"`{step.id}` ({step.operator}) calls a language model and {what}"
        issues.append(Issue("DM-LLM-012", message, step=step.id, fix=f"{fix}, or take the step out of the plan"))
    if issues:
        raise DatamillError("DM-LLM-012", issues[0].message, exit_code=ExitCode.MISSING_DEPENDENCY, issues=issues)


def check_budget(plan: Plan, estimate: Estimate, settings: Settings, given: float | None = None) -> None:
    """Raise `DM-LLM-013` when the plan is expected to cost more than it may."""
    limit = budget_of(plan, settings, given)
    if estimate.llm_usd <= limit:
        return
    digits = 2 if estimate.llm_usd >= 0.01 else 6
    needed = f"{math.ceil(estimate.llm_usd * 10**digits) / 10**digits:.{digits}f}"  # rounded up: it must suffice
    message = f"plan {plan.short} is expected to cost ${needed}, more than its budget of ${limit:.2f}"
    raise DatamillError(
        "DM-LLM-013", message, exit_code=ExitCode.BUDGET_EXCEEDED, step=llm_steps(plan)[0].id,
        fix=f"allow it with --budget {needed}USD, raise run.budget.llm_usd in the plan, or take fewer rows",
        context={"expected_usd": estimate.llm_usd, "budget_usd": limit},
    )  # fmt: skip


def service_settings(plan: Plan, project: Path, run_folder: Path, given: float | None = None) -> dict[str, Any]:
    """`Context.settings` for the workers of a run; empty when no step calls a model."""
    if not llm_steps(plan):
        return {}
    settings = resolve(project).settings
    folder = project.resolve() / STATE_FOLDER / CACHE
    budget = budget_of(plan, settings, given)
    return {"llm": worker_settings(settings, state_dir=run_folder / STATE, cache_dir=folder, budget_usd=budget)}


def usage_of(run_folder: Path) -> dict[str, Any]:
    """What a run asked a language model, by step and in all; empty when nothing was asked."""
    steps = {name: usage.to_dict() for name, usage in read_usage(run_folder / STATE).items()}
    if not steps:
        return {}
    names = next(iter(steps.values()))
    return {"steps": steps, "total": {name: sum(counts[name] for counts in steps.values()) for name in names}}
