"""What a model is asked to answer with, and how an answer becomes a `Draft`.

The form is smaller than a workflow: there is no place for a budget, an executor, checks or settings, so a model
cannot raise its own limits. Nothing here is trusted: ids, operators, parameters, columns and paths are checked when
the workflow is compiled.
"""

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from datamill.agents.draft import REFUSALS, Draft, RefusalCode, Topic
from datamill.services.llm.exchange import Rejection, Reply

UNUSABLE = "unusable_plan"
MAX_STEPS = 60


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class InputForm(_Form):
    """A source of rows."""

    path: str
    format: Literal["jsonl", "json", "csv", "tsv", "parquet", "txt"] | None = None


class StepForm(_Form):
    """One operator; `needs` names inputs or steps."""

    id: str
    operator: str
    needs: list[str] = Field(min_length=1)
    params: dict[str, Any] = {}
    why: str = ""


class OutputForm(_Form):
    """A file that is written; `llamafactory` registers it for training under that name."""

    source: str = Field(description="id of the step whose rows are written")
    path: str
    format: Literal["jsonl", "json", "parquet", "csv"] = "jsonl"
    card: bool = False
    llamafactory: str | None = None
    formatting: Literal["sharegpt", "alpaca"] = "sharegpt"
    ranking: bool = False


class TrainForm(_Form):
    """Training on an output; keys are those of DataFlex and LLaMA-Factory."""

    dataset: str
    target_dataset: str | None = None
    eval_dataset: str | None = None
    dataflex: dict[str, Any] = {}
    llamafactory: dict[str, Any] = {}


class WorkflowForm(_Form):
    """The workflow as a model writes it."""

    name: str
    description: str = ""
    seed: int | None = Field(None, ge=0)
    inputs: dict[str, InputForm] = Field(min_length=1)
    steps: list[StepForm] = Field(default=[], max_length=MAX_STEPS)
    outputs: dict[str, OutputForm] = Field(min_length=1)
    train: TrainForm | None = None


class QuestionForm(_Form):
    """The one question that must be answered first."""

    topic: Topic
    text: str = Field(min_length=1)
    options: list[str] = []


class RefusalForm(_Form):
    """What is declined and why."""

    code: RefusalCode
    what: str
    why: str
    safe_alternative: str = ""


class MissingForm(_Form):
    """A wish that no operator fulfils."""

    name: str
    asked_for: str
    offered: str


class PlanForm(_Form):
    """A model's whole answer."""

    verdict: Literal["plan", "clarify", "refuse"]
    workflow: WorkflowForm | None = None
    question: QuestionForm | None = None
    refusals: list[RefusalForm] = []
    missing: list[MissingForm] = []
    assumptions: list[str] = []
    hazards: list[str] = []
    forbidden: list[str] = Field(default=[], description="operator ids that the request forbids")
    language: str = "en"


def check_reply(reply: Reply) -> Rejection | None:
    """Whether an answer of the right form also says what its verdict needs."""
    form: PlanForm = reply.value
    if form.verdict == "plan" and form.workflow is None:
        return Rejection(UNUSABLE, "verdict `plan` needs a `workflow`")
    if form.verdict == "clarify" and form.question is None:
        return Rejection(UNUSABLE, "verdict `clarify` needs a `question`")
    if form.verdict == "refuse" and not form.refusals:
        return Rejection(UNUSABLE, f"verdict `refuse` needs `refusals` with a code of {', '.join(REFUSALS)}")
    try:
        to_draft(form, "", "")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return Rejection(UNUSABLE, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
    return None


def to_draft(form: PlanForm, request: str, planner: str) -> Draft:
    """The draft an answer stands for.

    Args:
        form: a checked answer.
        request: the person's words with secrets removed.
        planner: name of the model.
    """
    flow = form.workflow
    question = [form.question.model_dump()] if form.question and form.verdict == "clarify" else []
    return Draft.model_validate({
        "verdict": form.verdict,
        "workflow": _workflow(flow) if flow else None,
        "questions": question,
        "refusals": [refusal.model_dump() for refusal in form.refusals],
        "missing": [missing.model_dump() for missing in form.missing],
        "assumptions": form.assumptions,
        "hazards": form.hazards,
        "why": {step.id: step.why for step in flow.steps if step.why} if flow else {},
        "forbidden": form.forbidden,
        "language": form.language,
        "request": request,
        "planner": planner,
    })  # fmt: skip


def _workflow(form: WorkflowForm) -> dict[str, Any]:
    """Workflow YAML v1 as plain data."""
    data: dict[str, Any] = {
        "version": 1,
        "name": _slug(form.name),
        "description": form.description,
        "inputs": {name: entry.model_dump(exclude_none=True) for name, entry in form.inputs.items()},
        "steps": [step.model_dump(exclude={"why"}) for step in form.steps],
        "outputs": {name: _output(entry) for name, entry in form.outputs.items()},
    }
    if form.seed is not None:
        data["seed"] = form.seed
    if form.train is not None:
        data["train"] = {"engine": "llamafactory", **form.train.model_dump(exclude_none=True)}
    return data


def _output(form: OutputForm) -> dict[str, Any]:
    made: dict[str, Any] = {"from": form.source, "path": form.path, "format": form.format}
    if form.card:
        made["card"] = True
    if form.llamafactory:
        made["llamafactory"] = {"name": form.llamafactory, "formatting": form.formatting}
        if form.ranking:
            made["llamafactory"]["ranking"] = True
    return made


def _slug(text: str) -> str:
    """A workflow name: models write titles."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "workflow"
