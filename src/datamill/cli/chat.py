"""The loop behind `datamill chat`: lines in, turns out; words go to the planner, `/commands` to the plan.

Off a terminal it reads lines from stdin without a prompt and ends with the input.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from datamill.agents.conversation import Request, Turn, answer, look, start
from datamill.agents.services import ThreadServices
from datamill.cli import chat_views as views
from datamill.cli.ask_commands import as_data, conclude
from datamill.cli.review import edit_text, show_turn
from datamill.cli.session import Session
from datamill.errors import DatamillError, ExitCode, nearest

WAITING = frozenset({"review", "question"})
PROMPT = "you> "


class Chat:
    """One conversation on a terminal or a pipe.

    Args:
        session: where to talk.
        services: services of the threads.
        request: what was given on the command line; its text is filled in by the first words.
        thread: a thread to go on with, or None to start one.
    """

    def __init__(self, session: Session, services: ThreadServices, request: Request, thread: str | None) -> None:
        self.outer = session
        self.session = replace(session, json=False)  # with --json stdout gets one object, at the end
        self.services = services
        self.request = request
        self.turn: Turn | None = look(thread, services) if thread else None
        known = self.turn.state.get("previous_yaml") if self.turn else None
        self.versions: list[str] = [known] if known else []
        self.code = 0
        self.going = True

    @property
    def commands(self) -> dict[str, tuple[Callable[[str], None], str]]:
        """Every slash command with what it does."""
        return {
            "plan": (self._plan, "the plan under review"),
            "edit": (self._edit, "edit the plan: in $EDITOR, or `/edit FILE` takes the plan from a file"),
            "diff": (self._diff, "what changed since the version before"),
            "why": (self._why, "`/why STEP`: the reason for a step"),
            "sample": (self._sample, "`/sample STEP`: rows of the sample after a step"),
            "estimate": (self._estimate, "rows, seconds, calls and money to expect"),
            "approve": (self._approve, "run exactly this plan"),
            "reject": (self._reject, "`/reject REASON`: drop the plan"),
            "ops": (self._ops, "`/ops WORD`: operators that fit a word"),
            "undo": (self._undo, "back to the version before"),
            "save": (self._save, "`/save FILE`: write the plan to a new file"),
            "runs": (self._runs, "runs of this project"),
            "cost": (self._cost, "what planning has cost and the run may cost"),
            "help": (self._help, "this list"),
            "quit": (self._quit, "leave; the thread stays open"),
        }

    def run(self) -> int:
        """Talk until `/quit` or the end of input; returns the exit code of the last thing done."""
        if self.turn is not None and self.turn.kind == "interrupted":
            self._guarded(lambda: self._advance(lambda: answer(self._current().thread, {}, self.services)))
        elif self.turn is not None:
            self._show(self.turn)
        for line in self._lines():
            self._guarded(partial(self._take, line.strip()))
            if not self.going:
                break
        if self.turn is not None and self.turn.kind in WAITING:
            self.session.say(f"left open; go on with: datamill chat --thread {self.turn.thread}")
        if self.turn is not None:
            self.outer.result(as_data(self.turn, None))
        return self.code

    def _lines(self) -> Iterator[str]:
        while True:
            if self.session.interactive:
                sys.stderr.write(PROMPT)
                sys.stderr.flush()
            line = sys.stdin.readline()
            if not line:
                return
            yield line

    def _guarded(self, action: Callable[[], None]) -> None:
        """An error ends the turn, not the conversation."""
        try:
            self.code = 0
            action()
        except DatamillError as error:
            self.code = int(error.exit_code)
            self.session.error(error)

    def _take(self, line: str) -> None:
        if not line:
            return
        if not line.startswith("/"):
            self._said(line)
            return
        name, _, rest = line[1:].partition(" ")
        if name not in self.commands:
            close = nearest(name, self.commands)
            raise DatamillError(
                "DM-CLI-010", f"there is no `/{name}`", exit_code=ExitCode.USAGE,
                nearest=f"/{close}" if close else None, fix="/help",
            )  # fmt: skip
        self.commands[name][0](rest.strip())

    def _said(self, text: str) -> None:
        turn = self.turn
        if turn is not None and turn.kind in WAITING:
            self._advance(lambda: answer(turn.thread, {"type": "respond", "text": text}, self.services))
        else:
            request = replace(self.request, text=text)
            self._advance(lambda: start(request, self.services, turn.thread if turn else None))
            self.request = replace(self.request, inputs=())

    def _advance(self, step: Callable[[], Turn]) -> None:
        before = self.turn.state.get("yaml", "") if self.turn else ""
        if self.turn is None:
            self.session.say("planning ...")
        self.turn = step()
        if before and before != self.turn.state.get("yaml"):
            self.versions.append(before)
        self._show(self.turn)

    def _show(self, turn: Turn) -> None:
        self.session.say(f"thread {turn.thread}  planner {turn.state.get('planner')}")
        show_turn(self.session, turn, self.services)
        if turn.kind not in WAITING and turn.kind != "interrupted":
            self.code = conclude(self.session, turn, self.services)

    def _current(self) -> Turn:
        if self.turn is None:
            raise DatamillError(
                "DM-CLI-011", "nothing was asked yet", exit_code=ExitCode.USAGE, fix="say what you want"
            )
        return self.turn

    def _reviewed(self) -> Turn:
        turn = self._current()
        if turn.kind != "review":
            message = f"there is no plan under review (the thread is at `{turn.kind}`)"
            raise DatamillError("DM-CLI-011", message, exit_code=ExitCode.USAGE, fix="say what you want")
        return turn

    def _plan(self, _rest: str) -> None:
        show_turn(self.session, self._reviewed(), self.services)

    def _edit(self, rest: str) -> None:
        turn = self._reviewed()
        if rest:
            edited: str | None = views.read_workflow(self.session.project, rest)
        elif self.session.interactive:
            edited = edit_text(self.session, turn.state["yaml"], self.services)
        else:
            raise DatamillError("DM-CLI-012", "no terminal to edit on", exit_code=ExitCode.USAGE, fix="/edit FILE")
        if edited is not None:
            self._advance(lambda: answer(turn.thread, {"type": "edit", "yaml": edited}, self.services))

    def _diff(self, _rest: str) -> None:
        lines = self._reviewed().payload["diff_from_previous"]
        self.session.say("\n".join(f"  {line}" for line in lines) or "  no difference")

    def _why(self, rest: str) -> None:
        self.session.say(views.why(self._reviewed(), rest, self.services))

    def _sample(self, rest: str) -> None:
        self.session.say(views.sample(self._reviewed(), rest, self.services))

    def _estimate(self, _rest: str) -> None:
        self.session.say(views.estimate(self._reviewed()))

    def _approve(self, rest: str) -> None:
        turn = self._reviewed()
        digest = rest or turn.payload["plan_digest"]
        self._advance(
            lambda: answer(turn.thread, {"type": "approve", "digest": digest, "origin": "chat"}, self.services)
        )

    def _reject(self, rest: str) -> None:
        turn = self._reviewed()
        self._advance(lambda: answer(turn.thread, {"type": "reject", "reason": rest}, self.services))

    def _ops(self, rest: str) -> None:
        self.session.say(views.operators(rest))

    def _undo(self, _rest: str) -> None:
        turn = self._reviewed()
        if not self.versions:
            raise DatamillError("DM-CLI-011", "there is no version before this one", exit_code=ExitCode.USAGE)
        earlier = self.versions.pop()
        self._advance(lambda: answer(turn.thread, {"type": "edit", "yaml": earlier}, self.services))
        if self.versions and self.versions[-1] == turn.state["yaml"]:
            self.versions.pop()  # undoing twice goes back two versions, not forth again

    def _save(self, rest: str) -> None:
        path = views.save(self.session.project, self._current(), rest)
        self.session.say(f"saved {path.relative_to(self.session.project).as_posix()}")

    def _runs(self, _rest: str) -> None:
        self.session.say(views.runs(self.session.project))

    def _cost(self, _rest: str) -> None:
        self.session.say(views.cost(self.turn))

    def _help(self, _rest: str) -> None:
        self.session.say("\n".join(f"  /{name:<9} {what}" for name, (_, what) in self.commands.items()))

    def _quit(self, _rest: str) -> None:
        self.going = False
