"""Inputs as plan steps: format, files and their content digests, columns and what is odd about them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from datamill.errors import DatamillError, Issue, nearest
from datamill.operators.declaration import ColumnType, Params, Schema
from datamill.operators.registry import find
from datamill.services.reading.files import resolve_files
from datamill.services.reading.reader import plan_chunks
from datamill.services.reading.schema import dtypes
from datamill.services.reading.source import Chunk, SourceSpec
from datamill.workflows.findings import Findings
from datamill.workflows.inference import infer
from datamill.workflows.paths import PathPolicy
from datamill.workflows.plan import PlanStep
from datamill.workflows.spec import InputSpec

SEMANTICS = ("text", "chat", "math_answer", "label", "number", "url", "preference", "any")
DTYPES = ("string", "int64", "double", "bool", "json")
DECLARED = re.compile(r"^(?P<kind>[a-z_0-9]+)(\[(?P<dim>\d+)\])?(?P<null>[?!])?$")
ROLE_SEMANTICS = {"messages": "chat", "conversations": "chat", "url": "url"}


def source_step(
    name: str, spec: InputSpec, options: Mapping[str, Any], policy: PathPolicy, findings: Findings
) -> PlanStep | None:
    """The reading step of input `name`, or None with findings.

    Args:
        name: input name; it becomes the step id.
        spec: the input with interpolated path.
        options: interpolated reader options.
        policy: what may be read.
        findings: where findings go.
    """
    base = ("inputs", name)
    issue = policy.check_read(spec.path, name)
    if issue is not None:
        findings.add(issue, (*base, "path"))
        return None
    try:
        return _source_step(name, spec, options, policy, findings)
    except DatamillError as error:
        for item in error.issues:
            findings.add(replace(item, step=name, file=None, line=None), (*base, "path"))
        return None


def _source_step(
    name: str, spec: InputSpec, options: Mapping[str, Any], policy: PathPolicy, findings: Findings
) -> PlanStep | None:
    probe = SourceSpec(name, str(policy.resolve(spec.path)), policy.project, spec.format)
    files = resolve_files(probe).files
    found = spec.format or (files[0].format if files else "jsonl")
    operator = find(f"read.{found}")
    params = _reader_params(operator.params, name, {"path": spec.path, **options}, findings)
    if params is None:
        return None
    source = source_spec(name, params.model_dump(mode="json"), found, policy)
    chunks = plan_chunks(source)
    digests = chunk_digests(chunks)
    arrow, notes = infer(source, digests, policy.project)
    for note in notes:
        findings.add(replace(note, step=name, line=None), ("inputs", name))
    schema = _declare(name, spec.columns, dtypes(arrow), findings)
    return PlanStep(
        id=name, operator=operator.id, version=operator.version, params=params.model_dump(mode="json"), needs=(),
        sides=(), files=digests, effect=operator.effect.value, bound=operator.bound.value, schema=schema, arrow=arrow,
    )  # fmt: skip


def _reader_params(model: type[Params], name: str, values: Mapping[str, Any], findings: Findings) -> Params | None:
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        known = list(model.model_fields)
        findings.add_validation(error, ("inputs", name, "options"), known, "DM-PLAN-007", name)
        return None


def source_spec(name: str, params: Mapping[str, Any], found: str, policy: PathPolicy) -> SourceSpec:
    """What the reader is asked for, from the parameters of a reading step."""
    known = {field for field in SourceSpec.__dataclass_fields__ if field not in {"name", "path", "root", "format"}}
    values = {key: value for key, value in params.items() if key in known and value is not None}
    if values.get("columns") is not None:
        values["columns"] = tuple(values["columns"])
    path = str(policy.resolve(params["path"]))
    return SourceSpec(name, path, policy.project, found, **values)  # type: ignore[arg-type]  # a key of FORMATS


def read_source(step: PlanStep, policy: PathPolicy, shard_rows: int) -> tuple[SourceSpec, list[Chunk]]:
    """Source and chunks of a reading step when it runs; the content is checked against the plan.

    Raises:
        DatamillError: `DM-RUN-010` when the files are not those that were planned, `DM-PATH-001` when they may not
            be read.
    """
    issue = policy.check_read(str(step.params["path"]), step.id)
    if issue is not None:
        raise DatamillError(issue.code, issue.message, issues=[issue])
    params = {**step.params, "shard_rows": shard_rows}
    source = source_spec(step.id, params, step.operator.split(".", 1)[1], policy)
    chunks = plan_chunks(source)
    files = chunk_digests(chunks)
    if files != dict(step.files):
        message = f"the content of input `{step.id}` has changed since the plan was made"
        raise DatamillError("DM-RUN-010", message, step=step.id, fix="review and approve the plan again")
    return source, chunks


def chunk_digests(chunks: Sequence[Chunk]) -> dict[str, str]:
    """Content digest of every chunk by its place."""
    return {f"{c.file.relative}:{c.start}-{c.end}": c.digest for c in chunks}


def _declare(
    name: str, declared: str | Mapping[str, str] | None, inferred: Mapping[str, tuple[str, bool]], findings: Findings
) -> Schema:
    schema = {
        column: ColumnType(dtype, nullable, _guess(column, dtype)) for column, (dtype, nullable) in inferred.items()
    }
    if isinstance(declared, str):
        if declared not in SEMANTICS:
            close = nearest(declared, SEMANTICS)
            message = f"`schema: {declared}` is not a kind of rows"
            findings.add(Issue("DM-PLAN-019", message, step=name, nearest=close), ("inputs", name, "schema"))
            return schema
        return {c: ColumnType(k.dtype, k.nullable, _blanket(declared, c, k)) for c, k in schema.items()}
    for column, wanted in (declared or {}).items():
        place = ("inputs", name, "schema", column)
        if column not in schema:
            message = f"there is no column `{column}` in the data; columns: {', '.join(schema)}"
            close = nearest(column, schema) or _only_text(schema)
            findings.add(Issue("DM-PLAN-020", message, step=name, field="schema", nearest=close), place)
            continue
        kind = _declared_type(wanted, schema[column])
        if kind is None:
            close = nearest(wanted, [*SEMANTICS, *DTYPES, "embedding"])
            message = f"`{wanted}` is not a column type"
            findings.add(Issue("DM-PLAN-019", message, step=name, field="schema", nearest=close), place)
            continue
        schema[column] = kind
    return schema


def _declared_type(wanted: str, seen: ColumnType) -> ColumnType | None:
    match = DECLARED.match(wanted)
    if match is None:
        return None
    kind = match["kind"]
    nullable = {"?": True, "!": False, None: seen.nullable}[match["null"]]
    if kind == "embedding":
        return ColumnType(seen.dtype, nullable, "embedding")
    if kind in SEMANTICS:
        return ColumnType(seen.dtype, nullable, kind)
    return ColumnType(kind, nullable, seen.semantic) if kind in DTYPES else None


def _guess(column: str, dtype: str) -> str:
    if column in ROLE_SEMANTICS:
        return ROLE_SEMANTICS[column]
    if dtype.startswith("list<") and any(number in dtype for number in ("double", "float")):
        return "embedding"
    return "any"


def _blanket(declared: str, column: str, kind: ColumnType) -> str:
    if declared == "chat":
        return "chat" if column in {"messages", "conversations"} else kind.semantic
    return declared if kind.dtype == "string" and kind.semantic == "any" else kind.semantic


def _only_text(schema: Schema) -> str | None:
    strings = [name for name, kind in schema.items() if kind.dtype == "string"]
    return strings[0] if len(strings) == 1 else None


def under(path: Path, root: Path) -> str:
    """`path` relative to `root` where it lies below, else as it is."""
    return path.relative_to(root).as_posix() if root in path.parents else str(path)
