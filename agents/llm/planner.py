"""The llm planner: any OpenAI-compatible endpoint, structured replies, repair by typed findings.

What is unsafe is decided here, not by the model: secrets are removed before anything is sent; requests that the rules
planner declines are declined without a call; operators the person forbade never pass. Everything else a model may get
wrong (operators, parameters, columns, paths, code) is found when its draft is compiled, before a person sees it.
Cost: one request a draft and one a repair, plus the retries of `services.llm`.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from datamill.agents.draft import INPUT_PLACEHOLDER, Draft
from datamill.agents.inspection import Inspection
from datamill.agents.llm.prompt import draft_messages, repair_messages
from datamill.agents.llm.reply import PlanForm, check_reply, to_draft
from datamill.agents.rewire import carried_over, without_steps
from datamill.agents.rules.safety import remove_secrets
from datamill.errors import DatamillError, ExitCode, Issue
from datamill.services.llm.client import LLMClient
from datamill.services.llm.config import base_url, endpoint_name, read_config, worker_settings
from datamill.services.llm.exchange import Kind, Message, Request, Result
from datamill.settings import Settings, resolve

DEFAULT_MODEL: Final = "gpt-4.1-mini"
NODE: Final = "planner"
MAX_TOKENS: Final = 4096
MAX_CHARACTERS: Final = 8000
MAX_WAIT_S: Final = 60.0
OFFLINE: Final = "the offline planner needs no endpoint: add -m rules"

FAILURES: Final[Mapping[str, tuple[str, str]]] = {
    Kind.TIMEOUT: ("DM-AGENT-020", "did not answer in time"),
    Kind.CONNECTION: ("DM-AGENT-020", "cannot be reached"),
    Kind.SERVER_ERROR: ("DM-AGENT-020", "answers with errors"),
    Kind.RATE_LIMITED: ("DM-AGENT-020", "limits requests for too long"),
    Kind.BAD_REQUEST: ("DM-AGENT-020", "does not accept the request"),
    Kind.REFUSED: ("DM-AGENT-021", "declined to plan this"),
    Kind.CONTENT_FILTER: ("DM-AGENT-021", "filtered the answer"),
    Kind.TRUNCATED: ("DM-AGENT-022", "was cut off before its answer was whole"),
    Kind.INVALID_REPLY: ("DM-AGENT-023", "gave no usable plan"),
}
"""Code and words for each kind of failure; kinds of this planner's own checks count as unusable replies."""


class LLMPlanner:
    """Asks a language model for drafts.

    Args:
        name: model name; `llm.model` of the settings, then a small default, when None.
        environment: environment variables with key and address.
        project: project folder, for its settings; None reads settings of the user only.
        service: fields of `ServiceConfig` to override, such as `backoff_s`.
    """

    def __init__(
        self,
        name: str | None,
        environment: Mapping[str, str] | None = None,
        project: Path | None = None,
        service: Mapping[str, Any] | None = None,
    ) -> None:
        self._env = os.environ if environment is None else environment
        settings: Settings = resolve(project or Path.cwd()).settings
        self.name = name or settings.llm.model or DEFAULT_MODEL
        # A plan costs cents and its calls are bounded, so the budget of runs does not apply.
        data = worker_settings(settings, **{"budget_usd": None, "max_wait_s": MAX_WAIT_S, **(service or {})})
        data["base_url"] = base_url(settings.llm, self._env)
        self._data = data
        self.cost: dict[str, float] = {"calls": 0, "tokens": 0, "usd": 0.0}

    def draft(self, request: str, inspection: Inspection | None, previous: Draft | None) -> Draft:
        """See `Planner.draft`.

        Raises:
            DatamillError: `DM-AGENT-020` endpoint, `DM-AGENT-021` refusal of the model, `DM-AGENT-022` cut off,
                `DM-AGENT-023` no usable reply; `DM-LLM-...` for a key, a model or an address that is wrong.
        """
        text, _ = remove_secrets(request[:MAX_CHARACTERS])
        guard = _rules_view(request[:MAX_CHARACTERS], inspection)
        if guard.refusals:
            return guard.model_copy(update={"planner": self.name, "request": text})
        made = self._ask(draft_messages(text, inspection, previous), _together(previous, text))
        made = _kept(made, previous)
        return self._guarded(made, (*guard.forbidden, *(previous.forbidden if previous else ())), inspection, text)

    def repair(self, draft: Draft, issues: list[Issue], inspection: Inspection | None) -> Draft | None:
        """See `Planner.repair`; None when the model answers with something other than a plan."""
        made = self._ask(repair_messages(draft, issues, inspection), draft.request)
        if made.verdict != "plan":
            return None
        return self._guarded(_kept(made, draft), draft.forbidden, inspection, draft.request)

    def _ask(self, messages: Sequence[Message], request: str) -> Draft:
        client = LLMClient(read_config({**self._data, "model": self.name}, self._env), env=self._env)
        question = Request(
            messages, model=self.name, max_tokens=MAX_TOKENS, schema=PlanForm, node=NODE, check=check_reply
        )
        try:
            result = client.ask(question)
        except DatamillError as error:
            raise _with_way_out(error) from error
        finally:
            self._count(client)
        if result.reply is None:
            raise self._failure(result)
        return to_draft(result.reply.value, request, self.name)

    def _count(self, client: LLMClient) -> None:
        usage = client.usage.by_node().get(NODE)
        if usage is not None:
            self.cost["calls"] += usage.calls
            self.cost["tokens"] += usage.tokens_in + usage.tokens_out
            self.cost["usd"] += usage.usd

    def _failure(self, result: Result) -> DatamillError:
        code, what = FAILURES.get(str(result.kind), FAILURES[Kind.INVALID_REPLY])
        where = endpoint_name(self._data["base_url"]) if code == "DM-AGENT-020" else f"model `{self.name}`"
        message = f"{where} {what}: {result.last_error}"
        return DatamillError(code, message, exit_code=ExitCode.STEP_FAILED, fix=OFFLINE,
                             context={"kind": str(result.kind), "attempts": result.attempts})  # fmt: skip

    def _guarded(self, made: Draft, forbidden: Sequence[str], inspection: Inspection | None, request: str) -> Draft:
        """The draft with what must hold whatever the model says."""
        banned = tuple(dict.fromkeys((*made.forbidden, *forbidden)))
        hazards = list(made.hazards)
        workflow = made.workflow
        if workflow is not None:
            present = [name for name in made.operators if name in banned]
            if present:
                workflow = without_steps(workflow, lambda step: step["operator"] in banned)
                hazards.append(f"left out because you forbade it: {', '.join(dict.fromkeys(present))}")
            hazards += _unnamed_inputs(workflow, inspection, request)
        return made.model_copy(
            update={"workflow": workflow, "forbidden": banned, "hazards": tuple(hazards), "planner": self.name}
        )


def _kept(made: Draft, before: Draft | None) -> Draft:
    if made.workflow is None or before is None:
        return made
    return made.model_copy(update={"workflow": carried_over(made.workflow, before.workflow)})


def _rules_view(request: str, inspection: Inspection | None) -> Draft:
    """What the rules planner reads in the request: refusals and prohibitions bind the model too."""
    from datamill.agents.rules.planner import plan_request

    return plan_request(request, inspection)


def _together(previous: Draft | None, text: str) -> str:
    return f"{previous.request}\n{text}" if previous and previous.request else text


def _unnamed_inputs(workflow: Mapping[str, Any], inspection: Inspection | None, request: str) -> list[str]:
    """A warning for each input that neither the request nor the command line named."""
    known = (
        {facts.path for facts in inspection.inputs} | set(inspection.evaluation_sets.values()) if inspection else set()
    )
    paths = [str(entry.get("path", "")) for entry in workflow.get("inputs", {}).values()]
    unknown = [path for path in paths if path not in known and path not in request and path != INPUT_PLACEHOLDER]
    return [f"reads `{path}`, which the request does not name" for path in unknown]


def _with_way_out(error: DatamillError) -> DatamillError:
    """The same error, with the offline planner as a second way on."""
    issues = [
        Issue(**{**{f: getattr(issue, f) for f in Issue.__slots__}, "fix": f"{issue.fix}; or {OFFLINE}"})
        for issue in error.issues
    ]
    return DatamillError(error.code, issues[0].message, exit_code=error.exit_code, issues=issues)
