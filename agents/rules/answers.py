"""Answers to a question: the request is read again with the answer beside it, and what was asked counts as settled.

An answer never loosens a refusal: the combined text passes the same safety rules, and a question whose answer settles
nothing is asked again.
"""

import re

from datamill.agents.draft import Draft, Question
from datamill.agents.inspection import Inspection
from datamill.agents.rules.language import languages_named
from datamill.agents.rules.quantities import quantities
from datamill.agents.rules.request import Request, fold

YES = re.compile(
    (
        r"^\s*(?:y(?:es|ep|eah)?|ok(?:ay)?|sure|correct|right|do (?:it|that)|please do|go ahead|"
        r"s[ií]m?|claro|certo|vale|de acuerdo|correcto|isso|好的?|对|是的?|可以|行|嗯)\b"
    ),
    re.IGNORECASE,
)
_MARK = re.compile(r"\bmark|\btag|\bflag|\bkeep|marc|sinaliz|senal|manten|标记|打标|保留")
_REMOVE = re.compile(r"remov|drop|delete|\bgo\b|elimin|quit|borr|tir|apag|删|去掉")
_TEXT_FREE = frozenset(
    {
        "contradiction",
        "order",
        "destructive",
        "upload",
        "lossy",
        "stage",
        "method",
        "mixture",
        "term",
        "engine",
        "size",
        "languages",
        "columns",
        "threshold",
    }
)


def combined_request(previous: Draft, answer: str) -> str:
    """The earlier request with the answer worked in."""
    question, request, said = previous.question, previous.request, fold(answer)
    topic = question.topic if question else ""
    if question is not None and topic == "threshold":
        return _with_threshold(request, answer, question)
    if topic == "contradiction" and _REMOVE.search(said) and not _MARK.search(said):
        return _without_prohibition(request)
    named, before = Request(answer).models, Request(request).models
    if named and before:
        request = request[: before[0].start] + named[0].text + request[before[0].end :]
    addition = answer
    if topic == "model" and re.search(r"\btiny\b", said):
        addition = "model tiny"
    elif topic == "languages":
        addition = f"keep only {answer}" if languages_named(said) else ""
    elif YES.match(answer) and topic != "columns" and not Request(answer).paths:
        addition = ""
    return f"{request}\n{addition}" if addition else request


def settles(previous: Draft, answer: str, fresh: Draft) -> Draft:
    """`fresh` without the questions that the answer settled; its verdict follows from those left."""
    asked = previous.question
    if asked is None or fresh.verdict == "refuse" or not answer.strip():
        return fresh
    left = tuple(q for q in fresh.questions if not _answered(asked, q))
    settled = f"{asked.text} -> {answer.strip()[:80]}"
    assumptions = tuple(dict.fromkeys([*previous.assumptions, *fresh.assumptions, settled]))
    verdict = "clarify" if any(q.blocking for q in left) else "plan"
    if fresh.workflow is None:
        return fresh.model_copy(update={"assumptions": assumptions})
    workflow = dict(fresh.workflow)
    if asked.topic == "engine":
        executor = next((name for name in ("spark", "ray", "local") if name in fold(answer)), "local")
        workflow["run"] = {**workflow.get("run", {}), "executor": executor}
    return fresh.model_copy(
        update={"questions": left, "verdict": verdict, "assumptions": assumptions, "workflow": workflow}
    )


def _answered(asked: Question, other: Question) -> bool:
    return other.topic == asked.topic and asked.topic in _TEXT_FREE and other.text == asked.text


def _with_threshold(request: str, answer: str, question: Question) -> str:
    """Put the number of the answer (or the guess, for a yes) where the impossible one stood."""
    given = [q.share if q.unit == "percent" else q.value for q in quantities(Request(answer))]
    value = f"{given[0]:g}" if given else question.options[0] if question.options else ""
    reading = Request(request)
    wrong = [q for q in quantities(reading) if q.unit in {"", "percent"} and not 0 < q.value <= 1]
    near = re.search(r"threshold|jaccard|similar\w*|limiar|umbral|阈值|相似度", reading.masked)
    if not value or not wrong:
        return f"{request}\n{answer}"
    place = next((q for q in wrong if near and q.start >= near.start()), wrong[0])
    return request[: place.start] + value + request[place.end :]


def _without_prohibition(request: str) -> str:
    from datamill.agents.rules.negation import prohibition_spans

    text = request
    for start, end in sorted(prohibition_spans(Request(request)), reverse=True):
        text = text[:start] + text[end:]
    return text


def replanned(answer: str, inspection: Inspection | None, previous: Draft) -> Draft:
    """The draft after an answer."""
    from datamill.agents.rules.planner import plan_request

    return settles(previous, answer, plan_request(combined_request(previous, answer), inspection))
