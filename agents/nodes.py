"""The nodes of the graph: each takes the thread's state and returns what changes.

Nodes before `review` touch nothing but the state; `review` is pure, because LangGraph runs it again from the top when
a thread is resumed; only `execute` runs anything, and only for the digest that was approved.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt

from datamill.agents.draft import Draft
from datamill.agents.endpoints import with_reachable_models
from datamill.agents.finish import finish_workflow, with_train_model
from datamill.agents.inspection import Inspection
from datamill.agents.look import inspect_inputs
from datamill.agents.planners import RULES, Planner, make_planner
from datamill.agents.retrieval import retrieve
from datamill.agents.rewire import nearest_valid
from datamill.agents.saved_plans import save_plan_text
from datamill.agents.services import ThreadServices
from datamill.agents.state import ThreadState
from datamill.errors import DatamillError, Issue, PlanError
from datamill.settings import resolve
from datamill.workflows.approval import approve as record_approval
from datamill.workflows.compile import compile_text
from datamill.workflows.diff import diff_consents, diff_plans
from datamill.workflows.estimate import estimate_plan
from datamill.workflows.execute import RunRequest, run_plan
from datamill.workflows.llm_steps import prices_of
from datamill.workflows.plan import Plan
from datamill.workflows.run_record import find_run
from datamill.workflows.view import graph_json
from datamill.workflows.yaml_file import dump

MAX_REPAIRS = 2
ALLOWED = ("approve", "edit", "reject", "respond")
Change = dict[str, Any]


def services_of(config: RunnableConfig) -> ThreadServices:
    """The services handed in with the invocation."""
    services = config["configurable"]["services"]
    assert isinstance(services, ThreadServices)
    return services


def understand(state: ThreadState, config: RunnableConfig) -> Change:
    """Start a turn: nothing of an earlier draft counts until the planner has looked at it again."""
    planner = _planner(state, services_of(config))
    fresh: Change = {"repairs": 0, "issues": [], "notice": "", "salvaged": False, "exit": 0, "status": "open"}
    return {"planner": planner.name, **fresh}


def _planner(state: ThreadState, services: ThreadServices) -> Planner:
    return make_planner(state.get("planner") or None, services.environment, services.project)


def _failure(error: DatamillError) -> Change:
    """A turn that ends here; the thread keeps what was valid before."""
    return {"status": "failed", "issues": [issue.to_dict() for issue in error.issues], "exit": int(error.exit_code)}


def _costs(state: ThreadState, planner: Planner) -> Change:
    """What all calls of this thread's planner have cost so far."""
    before = state.get("planner_cost", {})
    total = {name: before.get(name, 0) + planner.cost.get(name, 0) for name in {**before, **planner.cost}}
    return {"planner_cost": total} if total else {}


def inspect(state: ThreadState, config: RunnableConfig) -> Change:
    """Look at a sample of the inputs, once."""
    if state.get("inspection") or not state.get("inputs"):
        return {}
    try:
        found = inspect_inputs(state["inputs"], services_of(config).project)
    except DatamillError as error:
        return _failure(error)
    return {"inspection": found.model_dump(mode="json")}


def retrieve_candidates(state: ThreadState, config: RunnableConfig) -> Change:
    """Operators and recipes that fit the request."""
    return {"candidates": retrieve(state["request"])}


def draft(state: ThreadState, config: RunnableConfig) -> Change:
    """Let the planner fill the draft; when it cannot, a plan that was already under review stays."""
    services = services_of(config)
    planner = _planner(state, services)
    try:
        made = planner.draft(_words(state, services, planner), _inspection(state), _earlier(state))
        made = with_reachable_models(made, services.project, services.environment)
    except DatamillError as error:
        return {**_not_planned(state, error), **_costs(state, planner)}
    made = with_train_model(made, state.get("train_model"))
    change: Change = {"draft": made.model_dump(mode="json"), **_costs(state, planner)}
    if made.verdict == "refuse":
        return {**change, "status": "refused"}
    if made.verdict == "clarify":
        return {**change, "status": "question"}
    text = _text(made, state, services)
    texts = {"first_yaml": state.get("first_yaml") or text, "previous_yaml": state.get("yaml", ""), "yaml": text}
    return {**change, **texts, "digest": "", "status": "open"}


def _words(state: ThreadState, services: ThreadServices, planner: Planner) -> str:
    """The person's last words. Rules read them as spoken, to say that a secret was among them; nobody else does."""
    kept = state["turns"][-1][1]
    return services.spoken if planner.name == RULES and services.spoken else kept


def _earlier(state: ThreadState) -> Draft | None:
    earlier = Draft.model_validate(state["draft"]) if state.get("draft") else None
    if earlier is not None and state.get("yaml"):
        earlier = earlier.model_copy(update={"workflow": _workflow_of(state["yaml"])})
    return earlier


def _not_planned(state: ThreadState, error: DatamillError) -> Change:
    if not (state.get("yaml") and state.get("digest")):
        return _failure(error)
    return {
        "status": "open",
        "previous_yaml": "",
        "notice": f"the plan is as it was, because the planner failed: {error}",
    }


def _workflow_of(text: str) -> dict[str, Any]:
    from datamill.workflows.yaml_file import parse

    return dict(parse(text).data)


def _inspection(state: ThreadState) -> Inspection | None:
    """Facts for the planner; with `--no-sample` nothing that was measured on rows."""
    if not state.get("inspection"):
        return None
    found = Inspection.model_validate(state["inspection"])
    return found if state.get("sampled", True) else found.schema_only()


def _text(made: Draft, state: ThreadState, services: ThreadServices) -> str:
    assert made.workflow is not None
    return dump(finish_workflow(made, state, services.budget_usd))


def compile_draft(state: ThreadState, config: RunnableConfig) -> Change:
    """Compile the workflow; on findings ask the planner to repair, a bounded number of times."""
    services = services_of(config)
    try:
        plan = compile_text(state["yaml"], services.compile_options(), "plan.yaml")
    except PlanError as error:
        return _repaired(state, config, list(error.issues))
    return {"digest": plan.digest, "consent": plan.consent(), "issues": [note.to_dict() for note in plan.notes]}


def _repaired(state: ThreadState, config: RunnableConfig, issues: list[Issue]) -> Change:
    found = [issue.to_dict() for issue in issues]
    if _is_edit(state):
        said = "\n".join(issue.render() for issue in issues)
        notice = f"your edit does not compile, so the plan is as it was:\n{said}"
        return {"yaml": state["previous_yaml"], "previous_yaml": "", "notice": notice, "digest": "", "issues": found}
    services = services_of(config)
    planner = _planner(state, services)
    rounds = state.get("repairs", 0)
    better = trouble = None
    if rounds < MAX_REPAIRS and state.get("draft"):
        try:
            better = planner.repair(Draft.model_validate(state["draft"]), issues, _inspection(state))
        except DatamillError as error:
            trouble = error
    costs = _costs(state, planner)
    if better is None or better.workflow is None:
        return {**_nearest(state, services, planner, issues, trouble), **costs}
    better = with_reachable_models(better, services.project, services.environment)
    change = {"draft": better.model_dump(mode="json"), "yaml": _text(better, state, services)}
    return {**change, **costs, "repairs": rounds + 1, "issues": found, "digest": ""}


def _is_edit(state: ThreadState) -> bool:
    """Whether the workflow at hand is a person's edit with a valid version before it."""
    edited = state.get("decision", {}).get("type") == "edit" and state.get("previous_yaml")
    return bool(edited) and state.get("yaml") != state.get("previous_yaml") and state.get("repairs") == MAX_REPAIRS


def _nearest(
    state: ThreadState, services: ThreadServices, planner: Planner, issues: list[Issue], trouble: DatamillError | None
) -> Change:
    """Nothing more to repair with: the findings, and the nearest valid plan for a person to look at."""
    stopped = {"issues": [issue.to_dict() for issue in issues], "status": "failed", "digest": "", "exit": 0}
    mended = nearest_valid(state["yaml"], services.compile_options()) if planner.name != RULES else None
    text, changes = mended or (state.get("previous_yaml", ""), ["the plan before stays"])
    if not text or state.get("salvaged"):
        return stopped
    lines = [f"DM-AGENT-024: the workflow of {planner.name} does not compile, and repairing it did not help"]
    lines += [f"  {line}" for issue in issues for line in issue.render().split("\n")]
    lines += [f"  {trouble}"] if trouble else []
    lines += ["this is the nearest valid plan:", *(f"  {change}" for change in changes)]
    return {"yaml": text, "notice": "\n".join(lines), "salvaged": True, "digest": "", "repairs": MAX_REPAIRS,
            "previous_yaml": ""}  # fmt: skip


def estimate(state: ThreadState, config: RunnableConfig) -> Change:
    """Price the plan by running its cheap part on a sample."""
    services = services_of(config)
    try:
        plan = compile_text(state["yaml"], services.compile_options(), "plan.yaml")
        prices = prices_of(resolve(services.project).settings.llm)
        found = estimate_plan(plan, services.project, services.allow_paths, prices)
    except DatamillError as error:
        return _failure(error)
    return {"estimate": found.to_dict(), "status": "review"}


def review(state: ThreadState, config: RunnableConfig) -> Change:
    """Show the plan and wait for a person. Pure: it runs again from the top on every resume."""
    decision = interrupt(review_payload(state, services_of(config)))
    return {"decision": dict(decision)}


def review_payload(state: ThreadState, services: ThreadServices) -> dict[str, Any]:
    """What a reviewer gets; a superset of what agent inboxes expect (`action_request`, `config`, `description`)."""
    options = services.compile_options()
    plan = compile_text(state["yaml"], options, "plan.yaml")
    changes = []
    if state.get("previous_yaml"):
        try:
            changes = diff_plans(compile_text(state["previous_yaml"], options), plan)
        except PlanError:
            changes = ["~ the version before did not compile"]
    made = state.get("draft") or {}
    return {
        "kind": "plan_review",
        "plan_digest": plan.digest,
        "yaml": state["yaml"],
        "view": graph_json(plan),
        "estimate": state.get("estimate", {}),
        "warnings": [note.to_dict() for note in plan.notes],
        "assumptions": list(made.get("assumptions", ())),
        "hazards": list(made.get("hazards", ())),
        "missing": list(made.get("missing", ())),
        "refusals": list(made.get("refusals", ())),
        "notice": state.get("notice", ""),
        "diff_from_previous": changes,
        "salvaged": bool(state.get("salvaged")),
        "allowed": list(ALLOWED),
        "action_request": {"action": "run_plan", "args": {"digest": plan.digest, "name": plan.name}},
        "config": {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True},
        "description": f"Run {plan.name} ({plan.short}) with {len(plan.steps)} steps",
    }


def ask(state: ThreadState, config: RunnableConfig) -> Change:
    """Put the planner's question to the person and wait for the answer."""
    made = Draft.model_validate(state["draft"])
    question = made.question
    text = question.text if question else "Please say more."
    options = list(question.options) if question else []
    answer = interrupt(
        {"kind": "question", "text": text, "options": options, "topic": question.topic if question else ""}
    )
    return {"decision": {"type": "respond", "text": str(dict(answer).get("text", ""))}}


def decide(state: ThreadState, config: RunnableConfig) -> Change:
    """Turn a decision into the next state; a stale approval goes back to review with the difference."""
    decision = state["decision"]
    kind = decision.get("type")
    if kind == "reject":
        said = str(decision.get("reason", ""))
        return {"status": "rejected", "turns": [*state["turns"], ("you", f"rejected: {said}")]}
    if kind == "respond":
        return {"status": "open", "turns": [*state["turns"], ("you", str(decision.get("text", "")))]}
    if kind == "edit":
        return {"status": "open", "yaml": str(decision["yaml"]), "previous_yaml": state["yaml"], "repairs": MAX_REPAIRS,
                "notice": "", "salvaged": False, "digest": ""}  # fmt: skip
    if kind == "approve":
        return _approved(state, services_of(config), decision)
    return {"status": "review", "notice": f"`{kind}` is not one of {', '.join(ALLOWED)}"}


def _approved(state: ThreadState, services: ThreadServices, decision: Mapping[str, Any]) -> Change:
    try:
        plan = compile_text(state["yaml"], services.compile_options(), "plan.yaml")
    except PlanError as error:
        return _failure(error)
    given = str(decision.get("digest") or state["digest"])
    if not plan.digest.startswith(given) or plan.digest != state["digest"]:
        return _stale(state, plan, given)
    return {"status": "approved", "digest": plan.digest, "origin": str(decision.get("origin", "chat")), "notice": ""}


def _stale(state: ThreadState, plan: Plan, given: str) -> Change:
    """Back to review: what was approved is not what would run."""
    before, now = (json.loads(json.dumps(consent)) for consent in (state.get("consent"), plan.consent()))
    changes = diff_consents(before, now) if before else []
    what = f"the plan changed since it was shown: {given[:12]} -> {plan.short}"
    if not changes:
        what = f"{given[:12]} is not this plan, which is {plan.short}"
    lines = [f"{what}; please look again", *(f"  {line}" for line in changes)]
    return {"status": "stale", "notice": "\n".join(lines), "previous_yaml": ""}


def execute(state: ThreadState, config: RunnableConfig) -> Change:
    """Record the approval, run the plan, train. A thread whose plan has run already runs nothing again."""
    services = services_of(config)
    try:
        plan = compile_text(state["yaml"], services.compile_options(), "plan.yaml")
    except PlanError as error:
        return _failure(error)
    if plan.digest != state["digest"]:
        return _stale(state, plan, state["digest"])
    if state.get("run", {}).get("digest") == plan.digest and state.get("status") == "done":
        return {}
    record_approval(services.project, plan, state.get("origin", "chat"))
    file = save_plan(state, services.project)
    shown = file.relative_to(services.project) if services.project in file.parents else file
    request = RunRequest(
        services.project, workers=services.workers, overwrite=services.overwrite, allow_paths=services.allow_paths,
        command=f"datamill run {shown}", listener=services.listener, budget_usd=services.budget_usd,
        asked="\n".join(said for who, said in state["turns"] if who == "you"), history=_history(state, plan, services),
    )  # fmt: skip
    result = run_plan(plan, request)
    run = {
        "id": result.run_id, "folder": str(result.folder), "status": result.status, "digest": plan.digest,
        "rows_in": result.rows_in, "rows_out": result.rows_out, "outputs": [o.path for o in result.outputs],
        "seconds": result.seconds, "gates_failed": [g.text() for g in result.gates if not g.passed], "plan": str(shown),
    }  # fmt: skip
    training = _train(plan, run, services) if plan.train is not None and services.train else {}
    return {"run": run, "training": training, "status": "done"}


def _history(state: ThreadState, plan: Plan, services: ThreadServices) -> dict[str, Any]:
    """What the report tells of the conversation: its turns, and what became of the first draft."""
    changes = ["~ the first draft did not compile"]
    with suppress(PlanError):
        changes = diff_plans(compile_text(state.get("first_yaml") or state["yaml"], services.compile_options()), plan)
    return {
        "turns": [list(turn) for turn in state["turns"]], "changes": changes, "planner": state.get("planner", ""),
        "planner_cost": state.get("planner_cost", {}),
    }  # fmt: skip


def _train(plan: Plan, run: Mapping[str, Any], services: ThreadServices) -> dict[str, Any]:
    from datamill.workflows.training_run import train_on_run

    record = find_run(services.project, str(run["id"]))
    result = train_on_run(services.project, plan, record, resume=True, listener=services.listener)
    return {"adapter": str(result.adapter), "steps": result.steps, "seconds": result.seconds,
            "train_loss": result.train_loss, "eval_loss": result.eval_loss, "notes": list(result.notes)}  # fmt: skip


def save_plan(state: ThreadState, project: Path) -> Path:
    """Write the workflow to `<out>/plan.yaml` so that it runs again tomorrow; see `save_plan_text`."""
    return save_plan_text(state["yaml"], project, state.get("out", "out"))


def explain(state: ThreadState, config: RunnableConfig) -> Change:
    """Closing words: what there is now and what can be done next."""
    run = state.get("run", {})
    text = f"{run.get('rows_in', 0):,} rows in, {run.get('rows_out', 0):,} out"
    if state.get("training"):
        text += f"; trained {state['training']['steps']} steps"
    return {"explanation": text, "turns": [*state["turns"], ("datamill", text)]}
