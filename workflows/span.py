"""Which part of a plan a run carries out: what `until` and `from_step` mean together, checked before it starts."""

from datamill.errors import DatamillError, ExitCode, nearest
from datamill.workflows.plan import Plan
from datamill.workflows.runner import RunOptions


def check_span(plan: Plan, options: RunOptions) -> None:
    """Check the steps that options name.

    Raises:
        DatamillError: exit 2; `DM-CLI-003` for a step that is not there (with the nearest name), `DM-CLI-008` when
            the options contradict each other.
    """
    for name in (options.until, options.from_step):
        if name is not None:
            _require_step(plan, name)
    if options.from_step is None:
        return
    if not options.reuse:
        raise _contradiction("--from reuses the steps above it and --fresh reuses nothing", "leave one of them out")
    if options.until is not None and options.from_step not in plan.upstream(options.until):
        message = f"`{options.until}` does not depend on `{options.from_step}`, so --from would change nothing"
        raise _contradiction(message, "name a step below it with --until, or leave --until out")


def _require_step(plan: Plan, name: str) -> None:
    known = [step.id for step in plan.steps]
    if name not in known:
        message = f"there is no step `{name}`"
        raise DatamillError(
            "DM-CLI-003", message, exit_code=ExitCode.USAGE, nearest=nearest(name, known),
            expected=f"one of {', '.join(known)}",
        )  # fmt: skip


def _contradiction(message: str, fix: str) -> DatamillError:
    return DatamillError("DM-CLI-008", message, exit_code=ExitCode.USAGE, fix=fix)
