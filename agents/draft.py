"""The typed draft both planners fill: a workflow in YAML v1 shape, and everything a person must know before saying yes.

A draft promises nothing runs: it is data. `verdict` says what the graph does next: `plan` goes to review, `clarify`
asks `questions[0]` first (the others are kept as topics), `refuse` declines. A refused or unclear request may still
carry a workflow: the safe remainder, or the draft the question is about.

Models are pydantic and strict, so that a language model's answer and the rules planner's answer are checked alike.
"""

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Verdict = Literal["plan", "clarify", "refuse"]

Topic = Literal[
    "input", "model", "target", "method", "columns", "languages", "threshold", "size", "mixture", "term",
    "contradiction", "order", "destructive", "upload", "lossy", "stage", "capability", "engine", "approval",
]  # fmt: skip
"""What a question is about; stable, so that a grader or a web page need not read the sentence."""

RefusalCode = Literal[
    "DM-AGENT-101", "DM-AGENT-102", "DM-AGENT-103", "DM-AGENT-104", "DM-AGENT-105",
    "DM-AGENT-106", "DM-AGENT-107", "DM-AGENT-108", "DM-AGENT-109", "DM-AGENT-110",
]  # fmt: skip
REFUSALS: dict[str, str] = {
    "DM-AGENT-101": "leakage",
    "DM-AGENT-102": "outside_project",
    "DM-AGENT-103": "infringing_source",
    "DM-AGENT-104": "personal_data_collection",
    "DM-AGENT-105": "hiding_provenance",
    "DM-AGENT-106": "secret_in_request",
    "DM-AGENT-107": "outside_service",
    "DM-AGENT-108": "impossible_medium",
    "DM-AGENT-109": "unsafe_use",
    "DM-AGENT-110": "unapproved_run",
}
"""Stable refusal codes and the kind of each."""

INPUT_PLACEHOLDER = "<input>"
"""Path of an input the request did not name; a draft that holds it always has a question about `input`."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Question(_Part):
    """Something only the person can decide.

    Attributes:
        topic: what it is about.
        text: the question, in the language of the request.
        options: answers that could be given, best first.
        blocking: whether two readings give different plans, so that nothing may run before the answer.
    """

    topic: Topic
    text: str
    options: tuple[str, ...] = ()
    blocking: bool = True


class Refusal(_Part):
    """A part of the request that is declined, why, and what could be done safely."""

    code: RefusalCode
    what: str
    why: str
    safe_alternative: str = ""

    @property
    def kind(self) -> str:
        """`leakage` for `DM-AGENT-101`."""
        return REFUSALS[self.code]


class MissingCapability(_Part):
    """A legitimate wish that no installed operator or training method fulfils.

    Attributes:
        name: id of the catalogue (`filter.perplexity`) or `train.<paradigm>.<method>` for a training method.
        asked_for: the wish in one or two words (`translate`).
        offered: what can be done today.
        wanted: parameters the request gave for it, so that nothing said is lost.
        quote: the words of the request.
        after: ids of steps or inputs it would follow.
        before: ids of steps or outputs it would precede.
    """

    name: str
    asked_for: str
    offered: str
    wanted: dict[str, Any] = Field(default_factory=dict)
    quote: str = ""
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


class Draft(_Part):
    """What a planner hands to the graph.

    Attributes:
        verdict: what happens next.
        workflow: YAML v1 as plain data, or None when nothing can be offered.
        questions: most important first; only the first is shown.
        refusals: what is declined.
        missing: what was asked for and does not exist.
        assumptions: readings chosen without asking, shown with `?`.
        hazards: things to look at before approving, shown with `!`.
        why: reason of each step by id, quoting the request.
        forbidden: operator ids the request forbade; none of them is in `workflow`.
        constraints: further prohibitions: `keep_all_rows`, `read_only`, `no_training`, `no_llm`.
        language: of the request: `en`, `zh`, `pt`, `es`.
        request: the request with secrets removed.
        planner: `rules` or the model's name.
    """

    verdict: Verdict
    workflow: dict[str, Any] | None = None
    questions: tuple[Question, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    missing: tuple[MissingCapability, ...] = ()
    assumptions: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    why: dict[str, str] = Field(default_factory=dict)
    forbidden: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    language: str = "en"
    request: str = ""
    planner: str = "rules"

    @property
    def question(self) -> Question | None:
        """The one question to show, if any: a blocking one first."""
        ordered = sorted(self.questions, key=lambda question: not question.blocking)
        return ordered[0] if ordered else None

    @property
    def operators(self) -> tuple[str, ...]:
        """Operator ids of the steps, in order."""
        steps = (self.workflow or {}).get("steps", [])
        return tuple(str(step["operator"]) for step in steps)


TOPICS: tuple[str, ...] = get_args(Topic)
