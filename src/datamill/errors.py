"""Errors with a stable code, a place, what was expected, and the command that fixes them.

The person on the command line and the planner repairing its own draft see the same objects: an `Issue` is one
finding, a `DatamillError` carries one or more of them and an exit code.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from dataclasses import field as dataclass_field
from difflib import get_close_matches
from enum import IntEnum
from typing import Any, Literal


class ExitCode(IntEnum):
    """Exit codes of the command line; part of the public interface."""

    OK = 0
    STEP_FAILED = 1
    USAGE = 2
    INVALID = 3
    NEEDS_APPROVAL = 4
    GATE_FAILED = 5
    MISSING_DEPENDENCY = 6
    BUDGET_EXCEEDED = 7
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Issue:
    """One finding about a workflow, a file or a run.

    Attributes:
        code: stable identifier such as `DM-PLAN-007`.
        message: what is wrong, in one sentence.
        severity: `error` stops, `warning` and `note` do not.
        step: id of the step, input or output concerned.
        field: dotted path inside that step, e.g. `params.threshold`.
        file: the file the finding points at.
        line: 1-based line in `file`.
        expected: what would have been right.
        nearest: the closest valid value, when there is one.
        fix: the next thing to do, usually a command.
        context: further machine-readable facts.
    """

    code: str
    message: str
    severity: Literal["error", "warning", "note"] = "error"
    step: str | None = None
    field: str | None = None
    file: str | None = None
    line: int | None = None
    expected: str | None = None
    nearest: str | None = None
    fix: str | None = None
    context: Mapping[str, Any] = dataclass_field(default_factory=dict)

    def render(self) -> str:
        """One or two lines for a terminal: place, code, message, nearest match, fix."""
        place = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        where = f" [{self.step}{'.' + self.field if self.field else ''}]" if self.step else ""
        text = f"{place}{self.code}{where} {self.message}"
        if self.expected:
            text += f" (expected {self.expected})"
        if self.nearest:
            text += f"; did you mean `{self.nearest}`?"
        if self.fix:
            text += f"\n  fix: {self.fix}"
        return text

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON-ready data without empty fields."""
        return {key: value for key, value in asdict(self).items() if value not in (None, {})}


class DatamillError(Exception):
    """Raised for anything a user can act on; every other exception is a defect of datamill."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        exit_code: ExitCode = ExitCode.STEP_FAILED,
        issues: Iterable[Issue] = (),
        **details: Any,
    ) -> None:
        self.issues: tuple[Issue, ...] = tuple(issues) or (Issue(code, message, **details),)
        self.code = code
        self.exit_code = exit_code
        super().__init__(code, message)

    def __str__(self) -> str:
        return "\n".join(issue.render() for issue in self.issues)

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep every field when the error crosses a process boundary."""
        return _rebuild, (type(self), self.args, self.exit_code, self.issues)


def _rebuild(
    kind: type[DatamillError], args: tuple[str, str], exit_code: ExitCode, issues: tuple[Issue, ...]
) -> DatamillError:
    error = kind.__new__(kind)
    DatamillError.__init__(error, *args, exit_code=exit_code, issues=issues)
    return error


class PlanError(DatamillError):
    """A workflow cannot be compiled; carries every issue found, not just the first."""

    def __init__(self, issues: Iterable[Issue]) -> None:
        found = tuple(issues)
        super().__init__(found[0].code, found[0].message, exit_code=ExitCode.INVALID, issues=found)

    def __reduce__(self) -> tuple[Any, ...]:
        return PlanError, (self.issues,)


class MissingDependencyError(DatamillError):
    """An optional package or back end is not there."""

    def __init__(self, package: str, needed_for: str, extra: str) -> None:
        super().__init__(
            "DM-ENV-001",
            f"{needed_for} needs the package `{package}`, which is not installed",
            exit_code=ExitCode.MISSING_DEPENDENCY,
            fix=f"pip install 'datamill[{extra}]'",
        )
        self._fields = (package, needed_for, extra)

    def __reduce__(self) -> tuple[Any, ...]:
        return MissingDependencyError, self._fields


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The closest known spelling of `word`, or None when nothing is close."""
    choices = tuple(known)
    matches = get_close_matches(word.lower(), [choice.lower() for choice in choices], n=1, cutoff=0.6)
    return next((k for k in choices if k.lower() == matches[0]), None) if matches else None
