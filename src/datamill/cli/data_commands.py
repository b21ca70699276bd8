"""`datamill data ...`: look at the rows of a run or of a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from datamill.cli.session import Session, usage_error

Target = Annotated[str, typer.Argument(help="run id, @last, or a data file")]
StepOption = Annotated[str | None, typer.Option("--step", help="step of the run (default: the last)")]


def register(app: typer.Typer) -> None:
    """Add the command group to the tree."""
    group = typer.Typer(
        help="Look at rows: what is there, what left and why.", no_args_is_help=True, rich_markup_mode=None
    )
    for command in (head, stats, drops, why, diff, card):
        group.command(command.__name__)(command)
    app.add_typer(group, name="data")


def _run_data(session: Session, target: str) -> Any:
    from datamill.workflows.lookup import RunData
    from datamill.workflows.run_record import find_run

    return RunData(session.project, find_run(session.project, target))


def _rows(session: Session, target: str, step: str | None) -> Iterator[Any]:
    """Tables of a file, or of a step of a run."""
    path = session.project / target
    if path.is_file():
        from datamill.services.reading.files import resolve_files
        from datamill.services.reading.reader import infer_schema, plan_chunks, read_chunk
        from datamill.services.reading.source import SourceSpec

        source = SourceSpec("file", str(path), session.project)
        resolve_files(source)
        schema, _ = infer_schema(source)
        for chunk in plan_chunks(source):
            for batch in read_chunk(source, chunk, schema):
                yield batch.rows
        return
    data = _run_data(session, target)
    yield from data.tables(step or data.steps()[-1])


def _line(row: dict[str, Any]) -> str:
    import orjson

    return orjson.dumps(row, default=str).decode()


def head(
    context: typer.Context, target: Target = "@last", step: StepOption = None,
    k: Annotated[int, typer.Option("-k", min=1, help="rows")] = 10,
) -> None:  # fmt: skip
    """The first rows, one JSON object a line."""
    session: Session = context.obj
    rows: list[dict[str, Any]] = []
    for table in _rows(session, target, step):
        rows += table.slice(0, k - len(rows)).to_pylist()
        if len(rows) >= k:
            break
    session.result(rows, "\n".join(_line(row) for row in rows))


def stats(context: typer.Context, target: Target = "@last", step: StepOption = None) -> None:
    """Rows, columns, nulls and text lengths."""
    session: Session = context.obj
    import pyarrow as pa

    from datamill.operators.declaration import Context
    from datamill.operators.registry import find
    from datamill.services.engines.tables import TableDataset
    from datamill.workflows.decisions import STATS, decide

    tables = list(_rows(session, target, step))
    table = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
    operator = find("report.stats")
    _, found = decide(operator.id, {}, [TableDataset.of(table)], Context("stats"))
    import orjson

    report = orjson.loads(found.get(STATS, "{}"))
    session.result(report, orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())


def drops(
    context: typer.Context, target: Target = "@last", step: StepOption = None,
    reason: Annotated[str | None, typer.Option("--reason", help="only this reason")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="examples a reason")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="another seed shows other examples")] = 0,
) -> None:  # fmt: skip
    """Rows that left, by step and reason, with examples."""
    session: Session = context.obj
    found = _run_data(session, target).dropped(step, reason, k, seed)
    lines, last = [], None
    for record in found:
        key = (record["step"], record["fate"], record["reason"])
        if key != last:
            lines.append(f"{record['step']}  {record['fate']}: {record['reason']}  ({record['count']:,} rows)")
            last = key
        bound = "" if record["value"] is None else f" value={record['value']:g}"
        bound += "" if record["threshold"] is None else f" threshold={record['threshold']:g}"
        into = f" into={record['into']}" if record["into"] else ""
        lines.append(f"    {record['id']}  {record['src'] or ''}{bound}{into}  {record['detail'] or ''}"[:200])
        if record["row"]:
            text = _line({k: v for k, v in record["row"].items() if not k.startswith("_")})
            lines.append(f"      {text[:180]}")
    session.result(found, "\n".join(lines) or "no row left")


def why(
    context: typer.Context, row_id: Annotated[str, typer.Argument(help="_id of the row")], target: Target = "@last"
) -> None:
    """The way of one row through a run: where it was, why it left, what training made of it."""
    session: Session = context.obj
    way = _run_data(session, target).why(row_id)
    if not way:
        raise usage_error(f"run {target} never saw a row `{row_id}`", "datamill data head @last")
    lines = []
    for stop in way:
        notes = "; ".join(f"{f['fate']}: {f['reason']} {f['detail'] or ''}".strip() for f in stop["fates"])
        lines.append(f"{stop['step']:<16} {'there' if stop['present'] else 'gone '}  {notes}")
    session.result(way, "\n".join(lines))


def diff(
    context: typer.Context, before: Annotated[str, typer.Argument(help="run or file")],
    after: Annotated[str, typer.Argument(help="run or file")], step: StepOption = None,
) -> None:  # fmt: skip
    """Which rows two runs (or files) do not share, by id."""
    session: Session = context.obj

    def ids(target: str) -> set[str]:
        return {row for table in _rows(session, target, step) for row in table["_id"].to_pylist()}

    old, new = ids(before), ids(after)
    report = {"both": len(old & new), "only_before": sorted(old - new), "only_after": sorted(new - old)}
    text = f"both {len(old & new):,}   only in {before} {len(old - new):,}   only in {after} {len(new - old):,}"
    session.result(report, text)


def card(context: typer.Context, target: Target = "@last") -> None:
    """The data cards of a run's outputs."""
    session: Session = context.obj
    from datamill.workflows.run_record import find_run

    record = find_run(session.project, target)
    cards = {}
    for output in record.state().get("outputs", []):
        path = Path(session.project / output["path"])
        file = path.with_name(f"{path.stem}.card.md")
        if file.is_file():
            cards[output["name"]] = file.read_text(encoding="utf-8")
    if not cards:
        raise usage_error(f"run {record.id} has no card", "set `card: true` on an output")
    session.result(cards, "\n".join(cards.values()))
