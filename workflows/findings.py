"""Collects all findings about a workflow, each with its line, instead of stopping at the first."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from datamill.errors import Issue, PlanError, nearest
from datamill.workflows.yaml_file import YamlDocument

Path = tuple[str | int, ...]


@dataclass
class Findings:
    """Findings about one document, in the order in which they were made."""

    document: YamlDocument
    issues: list[Issue] = field(default_factory=list)

    def add(self, issue: Issue, path: Sequence[str | int] = ()) -> None:
        """Record `issue` at the line of `path`."""
        line = issue.line or self.document.line(tuple(path))
        self.issues.append(replace(issue, file=issue.file or self.document.file, line=line))

    def add_validation(self, error: ValidationError, base: Path, known: Sequence[str], code: str, step: str) -> None:
        """Record every error pydantic found below `base`; unknown keys get their nearest match among `known`."""
        for item in error.errors():
            where = tuple(part for part in item["loc"] if isinstance(part, str | int))
            name = str(where[-1]) if where else ""
            field_path = ".".join(str(part) for part in where)
            if item["type"] == "extra_forbidden":
                issue = Issue(code, f"unknown key `{name}`", step=step, field=field_path, nearest=nearest(name, known))
            else:
                given = f", got {item['input']!r}"[:80] if not isinstance(item["input"], dict) else ""
                issue = Issue(code, f"`{field_path}`: {item['msg']}{given}", step=step, field=field_path)
            self.add(issue, (*base, *where))

    @property
    def errors(self) -> list[Issue]:
        """Findings that stop."""
        return [issue for issue in self.issues if issue.severity == "error"]

    @property
    def notes(self) -> tuple[Issue, ...]:
        """Warnings and notes."""
        return tuple(issue for issue in self.issues if issue.severity != "error")

    def raise_errors(self) -> None:
        """Raise everything found so far if any of it is an error."""
        if self.errors:
            raise PlanError([*self.errors, *self.notes])
