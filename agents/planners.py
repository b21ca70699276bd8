"""The two planners behind one interface: both fill the same typed draft."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from datamill.agents.draft import Draft
from datamill.agents.inspection import Inspection
from datamill.errors import Issue

RULES = "rules"


class Planner(Protocol):
    """Turns a request into a draft, and a draft with findings into a better one."""

    name: str
    cost: dict[str, float]

    def draft(self, request: str, inspection: Inspection | None, previous: Draft | None) -> Draft:
        """A first draft, or `previous` changed as the request asks."""
        ...

    def repair(self, draft: Draft, issues: list[Issue], inspection: Inspection | None) -> Draft | None:
        """A draft without the findings, or None when this planner cannot repair."""
        ...


class RulesPlanner:
    """The deterministic offline planner."""

    name = RULES

    def __init__(self) -> None:
        self.cost: dict[str, float] = {}

    def draft(self, request: str, inspection: Inspection | None, previous: Draft | None) -> Draft:
        """See `Planner.draft`."""
        from datamill.agents.rules.planner import plan_request

        return plan_request(request, inspection, previous)

    def repair(self, draft: Draft, issues: list[Issue], inspection: Inspection | None) -> Draft | None:
        """Rules make the same draft again, so there is nothing to repair with."""
        return None


def make_planner(name: str | None, environment: Mapping[str, str], project: Path | None = None) -> Planner:
    """The planner to use: the one named, else an endpoint that is configured, else `rules`.

    Args:
        name: `rules`, a model name, or None.
        environment: environment variables; only whether keys are set is looked at here.
        project: project folder, whose settings name the model.
    """
    configured = bool(environment.get("OPENAI_API_KEY") or environment.get("OPENAI_BASE_URL"))
    if name == RULES or (name is None and not configured):
        return RulesPlanner()
    from datamill.agents.llm.planner import LLMPlanner

    return LLMPlanner(name, environment, project)
