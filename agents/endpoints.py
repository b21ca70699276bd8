"""Plans and language models: a step that has nowhere to send its requests is left out, and the plan says so."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datamill.agents.draft import Draft
from datamill.agents.planners import RULES
from datamill.agents.rewire import without_steps
from datamill.operators.declaration import Bound
from datamill.operators.registry import catalogue
from datamill.services.llm.config import has_endpoint
from datamill.settings import LLMSettings, resolve


def with_reachable_models(draft: Draft, project: Path, environment: Mapping[str, str]) -> Draft:
    """The draft without steps that call a model when no endpoint is configured, with a sentence about each.

    A step without a model gets the planner's, when the planner is one and the settings name none.
    """
    workflow = draft.workflow
    steps = [step for step in (workflow or {}).get("steps", ()) if calls_model(str(step.get("operator")))]
    if workflow is None or not steps:
        return draft
    settings = resolve(project).settings.llm
    default = settings.model or (draft.planner if draft.planner != RULES else None)
    gone = [step for step in steps if not _reachable(step, settings, default, environment)]
    names = {str(step["id"]) for step in gone}
    left = without_steps(workflow, lambda step: str(step["id"]) in names)
    if settings.model is None and default is not None:
        left = {**left, "steps": [_with_model(step, default) for step in left["steps"]]}
    why = "no LLM endpoint is configured" if not has_endpoint(settings, environment) else "no model is configured"
    fix = "export OPENAI_BASE_URL=... OPENAI_API_KEY=... and set llm.model in datamill.toml, then ask again"
    said = tuple(f"`{step['id']}` ({step['operator']}) is left out: {why}; {fix}" for step in gone)
    return draft.model_copy(update={"workflow": left, "hazards": (*draft.hazards, *said)})


def calls_model(operator_id: str) -> bool:
    """Whether an operator of the catalogue calls a language model."""
    operator = catalogue().get(operator_id)
    return operator is not None and operator.bound is Bound.LLM


def _reachable(
    step: Mapping[str, Any], settings: LLMSettings, default: str | None, environment: Mapping[str, str]
) -> bool:
    named = default or (step.get("params") or {}).get("model")
    return bool(has_endpoint(settings, environment) and named)


def _with_model(step: dict[str, Any], model: str) -> dict[str, Any]:
    if not calls_model(str(step["operator"])) or (step.get("params") or {}).get("model"):
        return step
    return {**step, "params": {**(step.get("params") or {}), "model": model}}
