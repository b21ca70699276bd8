"""What was checked when the plan was compiled, checked once more before a run touches anything.

Between review and run a link may have been moved or a file replaced. Inputs are checked by the reading step itself;
here are the files that parameters name, and the places outputs go to. Cost: one read of each named file.
"""

from pathlib import Path

from datamill.errors import DatamillError, ExitCode, Issue
from datamill.workflows.check_steps import content_digest
from datamill.workflows.paths import PathPolicy
from datamill.workflows.plan import Plan, PlanStep


def recheck_paths(plan: Plan, policy: PathPolicy) -> None:
    """Check every path of a plan again.

    Raises:
        DatamillError: exit 3 with all findings: `DM-PATH-001` to `-005` for a path that may not be touched (any more),
            `DM-RUN-010` for a file whose content is not what was planned.
    """
    issues = []
    for step in plan.steps:
        if step.is_source:
            issues.append(policy.check_read(str(step.params["path"]), step.id))
        else:
            issues += [_changed(step, path, digest, policy) for path, digest in step.files.items()]
    inputs = [policy.resolve(str(step.params["path"])) for step in plan.steps if step.is_source]
    issues += [policy.check_write(output.path, name, inputs) for name, output in plan.outputs.items()]
    found = [issue for issue in issues if issue is not None]
    if found:
        raise DatamillError(found[0].code, found[0].message, exit_code=ExitCode.INVALID, issues=found)


def _changed(step: PlanStep, path: str, digest: str, policy: PathPolicy) -> Issue | None:
    issue = policy.check_read(path, step.id, "params")
    if issue is not None:
        return issue
    target: Path = policy.resolve(path)
    if not target.exists():
        return Issue("DM-PATH-005", f"there is no file `{path}`", step=step.id, field="params")
    if content_digest(target) == digest:
        return None
    message = f"the content of `{path}` has changed since the plan was made"
    return Issue("DM-RUN-010", message, step=step.id, fix="review and approve the plan again")
