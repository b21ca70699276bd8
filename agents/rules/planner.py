"""The rules planner: a sentence in, a typed draft out, offline and deterministic.

Cost: milliseconds; no model, no network, no file is read but the operator catalogue and the recipes.
"""

from collections.abc import Sequence

from datamill.agents.draft import Draft, Question, Refusal
from datamill.agents.inspection import Inspection
from datamill.agents.rules.assemble import assemble
from datamill.agents.rules.assembly import Assembly
from datamill.agents.rules.builders import build_nodes, forbidden_ids, wished
from datamill.agents.rules.corrections import corrected
from datamill.agents.rules.doubts import destroys, questions
from datamill.agents.rules.intents import Wanted, sequence_pairs, speaks_of_sequence
from datamill.agents.rules.nodes import Node
from datamill.agents.rules.ordering import ordered
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.request import Request
from datamill.agents.rules.safety import refusals, remove_secrets, upload_place
from datamill.agents.rules.spelling import spelled

MAX_CHARACTERS = 8000
"""Longer requests are cut; nobody reviews a plan for more."""

_FINAL = frozenset({"DM-AGENT-102", "DM-AGENT-103", "DM-AGENT-104", "DM-AGENT-105", "DM-AGENT-108", "DM-AGENT-109"})
"""Refusals after which nothing of the request is offered."""


def plan_request(text: str, inspection: Inspection | None = None, previous: Draft | None = None) -> Draft:
    """Draft a workflow for a request.

    Args:
        text: what the person wrote, in English, Chinese, Portuguese or Spanish.
        inspection: facts about attached inputs.
        previous: the draft under review; the text is then a change to it.

    Returns:
        A draft with verdict `plan`, `clarify` or `refuse`. Nothing runs.
    """
    if previous is not None and (previous.workflow is not None or previous.verdict == "clarify"):
        from datamill.agents.rules.edit import edit_draft

        return edit_draft(text, inspection, previous)
    cleaned, had_secret = remove_secrets(text[:MAX_CHARACTERS])
    reading = Reading(Request(corrected(spelled(cleaned))), inspection)
    declined = refusals(reading, had_secret)
    if any(refusal.code in _FINAL for refusal in declined):
        return _draft(reading, cleaned, "refuse", None, (), declined)
    found, match = wished(reading)
    nodes = build_nodes(reading, found, match)
    steps, cycle = ordered(
        nodes, sequence_pairs(reading.request, _marks(reading, nodes)), speaks_of_sequence(reading.request)
    )
    made = assemble(reading, steps)
    asked = questions(reading, steps, cycle, made.has_input, made.unresolved, made.new_path, match is not None)
    verdict = "refuse" if declined else "clarify" if any(q.blocking for q in asked) else "plan"
    nothing = not steps and reading.training is None and not _converts(reading)
    made.workflow["description"] = cleaned.strip()[:200]
    return _draft(
        reading,
        cleaned,
        verdict,
        None if nothing and not made.has_input else made,
        asked,
        declined,
        forbidden_ids(reading, found),
    )


def _marks(reading: Reading, nodes: Sequence[Node]) -> tuple[Wanted, ...]:
    """Operator words, and the places of steps that come from a condition rather than from an operator word."""
    named = {w.capability for w in reading.mentions}
    loose = ("filter.length", "filter.expr", "filter.lang", "pii.redact")
    more = [
        Wanted(n.capability, n.position, n.position + 1)
        for n in nodes
        if n.capability in loose and n.capability not in named
    ]
    return tuple(sorted([*reading.mentions, *more], key=lambda wanted: wanted.start))


def _converts(reading: Reading) -> bool:
    """Whether a file is only to be written in another form."""
    return (
        any(source.purpose == "output" for source in reading.sources)
        or destroys(reading) is not None
        or upload_place(reading) is not None
    )


def _draft(
    reading: Reading,
    said: str,
    verdict: str,
    made: Assembly | None,
    asked: tuple[Question, ...],
    declined: tuple[Refusal, ...],
    forbidden: tuple[str, ...] = (),
) -> Draft:
    return Draft.model_validate({
        "verdict": verdict,
        "workflow": made.workflow if made else None,
        "questions": asked,
        "refusals": declined,
        "missing": tuple(made.missing) if made else (),
        "assumptions": tuple(made.assumptions) if made else (),
        "hazards": tuple(made.hazards) if made else (),
        "why": made.why if made else {},
        "forbidden": tuple(operator for operator in forbidden if operator not in _used(made)),
        "constraints": reading.prohibitions,
        "language": reading.request.language,
        "request": said,
    })  # fmt: skip


def _used(made: Assembly | None) -> set[str]:
    """Operators of the draft: conditions that tell the sides of a split apart are no filters."""
    return {str(step["operator"]) for step in made.workflow["steps"]} if made else set()
