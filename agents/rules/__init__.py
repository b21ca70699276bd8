"""Offline planner: natural language in four languages to a typed draft, by rules alone."""

from datamill.agents.rules.planner import plan_request

__all__ = ["plan_request"]
