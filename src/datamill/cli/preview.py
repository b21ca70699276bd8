"""The plan as people review it: one table, the graph, findings, assumptions."""

from collections.abc import Sequence

from datamill.operators.registry import catalogue
from datamill.workflows.estimate import Estimate
from datamill.workflows.plan import Plan, PlanStep
from datamill.workflows.view import ascii_graph, shown_params

WIDTH = 100


def plan_preview(plan: Plan, estimate: Estimate | None = None, width: int = WIDTH) -> str:
    """The plan in at most `width` columns: head line, steps, graph, outputs, training, findings."""
    lines = [_head(plan, estimate)]
    lines += _table([_row(plan, step, number, estimate) for number, step in enumerate(plan.steps, 1)], width)
    lines += ["     " + line for line in ascii_graph(plan, width - 5).split("\n")]
    lines += [f"     -> {output.path} ({output.format})" for output in plan.outputs.values()]
    if plan.train is not None:
        lines += _training(plan)
    marks = {"warning": "!", "note": "i", "error": "x"}
    for note in plan.notes:
        place = f"{note.step}: " if note.step else ""
        fix = f" ({note.fix})" if note.fix else ""
        lines.append(f"  {marks[note.severity]} {place}{note.message}{fix}"[: width * 3])
    return "\n".join(lines)


def _head(plan: Plan, estimate: Estimate | None) -> str:
    cost = ""
    if estimate is not None:
        calls = sum(step.llm_calls for step in estimate.steps)
        cost = f", est. {duration(estimate.seconds)}, {calls:,} LLM calls at run time"
    return f"PLAN  {plan.name}  digest {plan.short}   {len(plan.steps)} steps, {plan.run.executor}{cost}"


def _row(plan: Plan, step: PlanStep, number: int, estimate: Estimate | None) -> list[str]:
    operator = catalogue().get(step.operator)
    defaults = operator.params.model_construct().model_dump(mode="json") if operator else {}
    rows = estimate.rows(step.id) if estimate else None
    return [
        str(number),
        step.id,
        step.operator,
        shown_params(step.params, defaults),
        "" if rows is None else f"{rows:,}",
        step.why or "",
    ]


def _table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    head = ["#", "step", "operator", "key parameters", "est. rows", "why"]
    if not any(row[4] for row in rows):
        head[4] = ""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    widths[3] = min(widths[3], 34)
    lines = []
    for row in [head, *rows]:
        cells = [
            cell[: widths[index]].rjust(widths[index]) if index == 4 else cell[: widths[index]].ljust(widths[index])
            for index, cell in enumerate(row)
        ]
        lines.append(("  " + "  ".join(cells)).rstrip()[:width])
    return lines


def _training(plan: Plan) -> list[str]:
    train = plan.train
    assert train is not None
    flex = train.dataflex
    method = flex.get("component_name") or flex.get("train_type", "static")
    model = train.llamafactory.get("model_name_or_path", "?")
    rounds = f", {flex['update_times']} rounds every {flex.get('update_step')} steps" if "update_times" in flex else ""
    target = f", target {train.target_dataset}" if train.target_dataset else ""
    return [f"     train: {method} on {train.dataset}, model {model}{rounds}{target}"]


def duration(seconds: float) -> str:
    """`2m40s`, `3.1s`."""
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s"
