"""What every command shares: the project, how to talk, and how errors end.

Results go to stdout, the conversation to stderr. With `--json` stdout holds one JSON object and nothing else. Off a
terminal nothing prompts, spins or colours.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from datamill.errors import DatamillError, ExitCode, Issue

GLOBAL_FLAGS = ("--json", "--no-color", "--no-input", "-q", "--quiet", "-v", "-vv", "--verbose")
GLOBAL_OPTIONS = ("--project",)


@dataclass
class Session:
    """Global options of one invocation.

    Attributes:
        project: project folder.
        json: results as one JSON object.
        quiet: only results and errors.
        verbose: 0, 1 (reasons) or 2 (tracebacks).
        color: whether stderr may be coloured.
        interactive: whether questions may be asked.
    """

    project: Path
    json: bool = False
    quiet: bool = False
    verbose: int = 0
    color: bool = False
    interactive: bool = False

    def say(self, text: str = "") -> None:
        """A line of conversation, on stderr."""
        if not self.quiet:
            _write(sys.stderr, text)

    def result(self, data: Mapping[str, Any] | Sequence[Any], text: str | None = None) -> None:
        """The result of a command: `data` with `--json`, else `text`."""
        if self.json:
            _write(sys.stdout, orjson.dumps(data, default=str, option=orjson.OPT_INDENT_2).decode())
        elif text is not None:
            _write(sys.stdout, text)

    def error(self, error: DatamillError) -> None:
        """An error, on stderr; with `--json` the same findings on stdout."""
        if self.json:
            findings = [issue.to_dict() for issue in error.issues]
            self.result({"error": {"code": error.code, "exit": int(error.exit_code), "issues": findings}})
        for issue in error.issues:
            _write(sys.stderr, self.paint(issue))

    def paint(self, issue: Issue) -> str:
        """One finding as text, its severity coloured on a terminal."""
        word = f"{issue.severity} {issue.render()}"
        if not self.color:
            return word
        tint = {"error": "31", "warning": "33", "note": "36"}[issue.severity]
        return f"\x1b[{tint}m{issue.severity}\x1b[0m {issue.render()}"


def _write(stream: Any, text: str) -> None:
    """Write a line; lone surrogates and foreign encodings become replacement characters, never a traceback."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding, "replace") + "\n")
    stream.flush()


def hoist_globals(arguments: Sequence[str]) -> list[str]:
    """Move global options to the front, so that they may be written after the command too."""
    front: list[str] = []
    rest: list[str] = []
    waiting = iter(arguments)
    for word in waiting:
        if word == "--":
            rest += [word, *waiting]
        elif word in GLOBAL_FLAGS:
            front.append(word)
        elif word in GLOBAL_OPTIONS:
            front += [word, *([value] if (value := next(waiting, None)) is not None else [])]
        elif word.startswith("--project="):
            front.append(word)
        else:
            rest.append(word)
    if "ask" in rest[:1]:  # `ask --approve` takes a value only after `=`; the bare form means "the plan just printed"
        rest = ["--approve=" if word == "--approve" else word for word in rest]
    return front + rest


def wants_color(no_color: bool) -> bool:
    """Whether stderr is a terminal that may be coloured (`NO_COLOR`, `TERM=dumb` and `CI` say no)."""
    if no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or os.environ.get("CI"):
        return False
    return sys.stderr.isatty()


def may_ask(no_input: bool) -> bool:
    """Whether a person sits at the other end."""
    return not no_input and sys.stdin.isatty() and sys.stderr.isatty() and not os.environ.get("CI")


def usage_error(message: str, fix: str | None = None) -> DatamillError:
    """`DM-CLI-001`, exit 2."""
    return DatamillError("DM-CLI-001", message, exit_code=ExitCode.USAGE, fix=fix or "datamill --help")
