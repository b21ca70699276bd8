"""State of a conversation thread: plain data only, so that it survives the process in SQLite."""

from typing import Any, Literal, TypedDict

Status = Literal["open", "question", "review", "rejected", "refused", "failed", "approved", "stale", "done"]


class ThreadState(TypedDict, total=False):
    """Everything a thread remembers.

    Keys:
        request: the person's words with secrets removed; grows by what they answer.
        turns: `(who, text)` of the conversation.
        inputs: paths named on the command line or in the request.
        out: folder for the plan and the outputs.
        seed: seed asked for on the command line.
        train_model: `--train-model`.
        planner: `rules` or a model name.
        sampled: whether the planner may see facts of a sample.
        inspection: facts about the inputs.
        candidates: operator and recipe ids retrieved for the request.
        draft: the planner's draft.
        yaml: the workflow under discussion.
        previous_yaml: the version before, for the diff.
        first_yaml: the first draft of the thread, for the report.
        digest: digest of the compiled `yaml`.
        consent: what the digest is of, to say later what changed.
        issues: findings of the last compile.
        repairs: repair rounds used for the current draft.
        estimate: estimate of the plan.
        decision: the person's last decision.
        origin: where the yes came from.
        run: what the run left (id, rows, outputs).
        training: what training left.
        status: where the thread stands.
        notice: a sentence to show with the next review, such as why an approval was stale.
        explanation: closing words.
        exit: exit code that belongs to a failure.
        salvaged: whether the plan under review is the nearest valid one to what the planner wrote.
        planner_cost: tokens, calls and money of an LLM planner.
    """

    request: str
    turns: list[tuple[str, str]]
    inputs: list[str]
    out: str
    seed: int | None
    train_model: str | None
    planner: str
    sampled: bool
    inspection: dict[str, Any]
    candidates: dict[str, list[str]]
    draft: dict[str, Any]
    yaml: str
    previous_yaml: str
    first_yaml: str
    digest: str
    consent: dict[str, Any]
    issues: list[dict[str, Any]]
    repairs: int
    estimate: dict[str, Any]
    decision: dict[str, Any]
    origin: str
    run: dict[str, Any]
    training: dict[str, Any]
    status: Status
    notice: str
    explanation: str
    exit: int
    salvaged: bool
    planner_cost: dict[str, Any]
