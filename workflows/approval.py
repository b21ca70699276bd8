"""Consent: an approval names one plan by its digest, with time and origin, and nothing else can run.

Approvals lie in the project as one file per digest; approving twice changes nothing. An approval covers the plan
as reviewed. It never covers deleting or overwriting inputs (refused when compiled), overwriting files datamill did
not write, or exceeding the budget: those need their own yes.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from datamill.errors import DatamillError, ExitCode
from datamill.services.storage.atomic import write_bytes, write_json
from datamill.workflows.diff import diff_consents
from datamill.workflows.paths import STATE_FOLDER
from datamill.workflows.plan import Plan

APPROVALS = "approvals"
MIN_PREFIX = 6


@dataclass(frozen=True)
class Approval:
    """A recorded yes.

    Attributes:
        digest: the plan it is for.
        time: UTC, ISO 8601.
        origin: where the yes came from: `terminal`, `flag --approve`, `api`, `chat`.
    """

    digest: str
    time: str
    origin: str


def _folder(project: Path) -> Path:
    return project / STATE_FOLDER / APPROVALS


def approve(project: Path, plan: Plan, origin: str) -> Approval:
    """Record a yes for `plan`; an earlier yes for the same digest stands."""
    existing = approval_of(project, plan.digest)
    if existing is not None:
        return existing
    approval = Approval(plan.digest, datetime.now(UTC).isoformat(timespec="seconds"), origin)
    folder = _folder(project)
    write_bytes(folder / f"{plan.digest}.yaml", plan.yaml.encode(), "approval.plan")
    record = {**asdict(approval), "name": plan.name, "consent": plan.consent()}
    write_json(folder / f"{plan.digest}.json", record, "approval.record")
    return approval


def approval_of(project: Path, digest: str) -> Approval | None:
    """The approval of a digest, if there is one; a record that names another digest is none."""
    record = _read(_folder(project) / f"{digest}.json")
    if record is None or record.get("digest") != digest:
        return None
    return Approval(record["digest"], record["time"], record["origin"])


def check_prefix(plan: Plan, given: str) -> None:
    """Check that the digest a person typed names this plan.

    Raises:
        DatamillError: `DM-AGENT-003` when it does not, or is too short to mean anything.
    """
    if len(given) >= MIN_PREFIX and plan.digest.startswith(given.lower()):
        return
    raise DatamillError(
        "DM-AGENT-003",
        f"`{given}` is not the digest of this plan, which is {plan.short}",
        exit_code=ExitCode.NEEDS_APPROVAL,
        fix="review the plan, then approve the digest it shows",
    )


def require(project: Path, plan: Plan, command: str) -> Approval:
    """The approval of `plan`.

    Args:
        project: project folder.
        plan: the plan about to run.
        command: the command that would approve and run it, for the message.

    Raises:
        DatamillError: `DM-AGENT-002` when nobody approved it, `DM-AGENT-004` with the differences when an earlier
            version of the same workflow was approved.
    """
    approval = approval_of(project, plan.digest)
    if approval is not None:
        return approval
    earlier = latest_of_name(project, plan.name)
    if earlier is None:
        message = f"plan {plan.short} needs approval"
        raise DatamillError("DM-AGENT-002", message, exit_code=ExitCode.NEEDS_APPROVAL, fix=command)
    changes = "\n".join(f"  {line}" for line in diff_consents(earlier["consent"], plan.consent()))
    message = f"plan {plan.short} is not the approved {earlier['digest'][:12]}:\n{changes}"
    raise DatamillError("DM-AGENT-004", message, exit_code=ExitCode.NEEDS_APPROVAL, fix=command)


def latest_of_name(project: Path, name: str) -> Mapping[str, Any] | None:
    """The newest approval record of workflows called `name`."""
    folder = _folder(project)
    records = [_read(path) for path in folder.glob("*.json")] if folder.is_dir() else []
    named = [record for record in records if record is not None and record.get("name") == name]
    return max(named, key=lambda record: str(record["time"]), default=None)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DatamillError(
            "DM-AGENT-005",
            f"an approval record is damaged: {error}",
            exit_code=ExitCode.NEEDS_APPROVAL,
            file=str(path),
            fix=f"delete {path.name} and approve the plan again",
        ) from error
    return record
