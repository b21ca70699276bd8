"""Last touches to a draft before it is compiled: command-line wishes and the reasons of steps."""

from typing import Any

from datamill.agents.draft import Draft
from datamill.agents.rules.train_block import NO_MODEL
from datamill.agents.state import ThreadState

ORDER = ("version", "name", "description", "seed", "inputs", "params", "steps", "outputs", "checks", "run", "train")


def finish_workflow(draft: Draft, state: ThreadState, budget_usd: float | None = None) -> dict[str, Any]:
    """The draft's workflow with `--seed`, `--out` and `--train-model` applied and `why` filled in, keys in file order.

    Args:
        draft: a draft with a workflow.
        state: the thread, for what was asked for on the command line.
        budget_usd: LLM money the person allowed; only a person sets a budget, so a draft's own does not count.
    """
    assert draft.workflow is not None
    flow: dict[str, Any] = {**draft.workflow}
    if state.get("seed") is not None:
        flow["seed"] = state["seed"]
    flow["steps"] = [_with_why(step, draft.why) for step in flow.get("steps", [])]
    if state.get("out"):
        flow["outputs"] = {name: _moved(output, str(state["out"])) for name, output in flow.get("outputs", {}).items()}
    if budget_usd is not None:
        run = flow.get("run") or {}
        flow["run"] = {**run, "budget": {**(run.get("budget") or {}), "llm_usd": budget_usd}}
    if flow.get("train") and state.get("train_model"):
        inner = {**flow["train"].get("llamafactory", {}), "model_name_or_path": state["train_model"]}
        inner.pop("template", None)  # the template belongs to the model
        flow["train"] = {**flow["train"], "llamafactory": inner}
    return {key: flow[key] for key in ORDER if flow.get(key) not in (None, {}, [])}


def with_train_model(draft: Draft, model: str | None) -> Draft:
    """The draft without the question and the assumption about a model that `--train-model` answers.

    Args:
        draft: what the planner made.
        model: `--train-model`, or None.
    """
    if not model:
        return draft
    questions = tuple(question for question in draft.questions if question.topic != "model")
    settled = draft.verdict == "clarify" and not any(question.blocking for question in questions)
    return draft.model_copy(
        update={
            "questions": questions,
            "assumptions": tuple(note for note in draft.assumptions if note != NO_MODEL),
            "verdict": "plan" if settled and draft.workflow is not None else draft.verdict,
        }
    )


def _with_why(step: dict[str, Any], why: dict[str, str]) -> dict[str, Any]:
    if step.get("why") or step["id"] not in why:
        return step
    return {**step, "why": why[step["id"]]}


def _moved(output: dict[str, Any], out: str) -> dict[str, Any]:
    """An output in planner's default folder goes to the folder asked for; a path the request named stays."""
    path = str(output.get("path", ""))
    if out.rstrip("/") != "out" and (path == "out/" or path.startswith("out/")):
        return {**output, "path": f"{out.rstrip('/')}/{path.removeprefix('out/')}"}
    return output
