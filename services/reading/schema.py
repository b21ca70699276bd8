"""From a profile to the schema that every reader of the source uses, and what people should know about it."""

from typing import Final

import pyarrow as pa

from datamill.errors import DatamillError, ExitCode, Issue, nearest
from datamill.services.reading.columns import DTYPE_KEY, SOURCE_KEY, ColumnProfile, resolve
from datamill.services.reading.profile import Profile
from datamill.services.reading.source import FileEntry, SourceSpec
from datamill.services.records import SYSTEM_COLUMNS

CAST_TYPES: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "json": pa.string(),
}
_SPOKEN: Final = {"integer": "integer", "long": "integer", "bigint": "integer beyond 64 bits", "number": "number"}


def make_schema(spec: SourceSpec, profile: Profile) -> tuple[pa.Schema, list[Issue]]:
    """Data columns of a source and findings about them.

    Args:
        spec: the source, for `columns` and `cast`.
        profile: what all of its data holds.

    Returns:
        Arrow schema of the data columns; a field carries `datamill.dtype` = `json` for JSON text and `datamill.key`
        when it is called otherwise in the file. Findings: `DM-READ-103` mixed types, `104` values missing, `107`
        renamed columns.

    Raises:
        DatamillError: `DM-READ-009` for a column in `columns` or `cast` that the data lacks, `DM-READ-014` for an
            unknown type in `cast`.
    """
    if profile.columns or profile.num_rows:
        _check_names(spec, profile)
    fields, findings = [], []
    for key, column in profile.columns.items():
        if spec.columns is not None and key not in spec.columns:
            continue
        name = _free_name(key, profile)
        if name != key:
            message = f"column `{key}` is called `{name}` here, because `{key}` is a system column"
            findings.append(Issue("DM-READ-107", message, severity="warning", file=spec.path))
        fields.append(_field(spec, key, name, column, profile.num_rows))
        findings += _column_findings(spec, key, column, profile.num_rows)
    return pa.schema(fields), findings


def dtypes(schema: pa.Schema) -> dict[str, tuple[str, bool]]:
    """Column to (type name as plans show it, whether a null may occur)."""
    return {
        field.name: ((field.metadata or {}).get(DTYPE_KEY, str(field.type).encode()).decode(), field.nullable)
        for field in schema
    }


def empty_files(files: list[FileEntry], profile: Profile) -> list[Issue]:
    """A note for every file without a record."""
    return [
        Issue("DM-READ-102", "the file holds no record and is passed over", severity="note", file=file.display)
        for file in files
        if not profile.rows_of_file.get(file.index)
    ]


def _check_names(spec: SourceSpec, profile: Profile) -> None:
    for where, names in (("columns", spec.columns or ()), ("cast", tuple(spec.cast))):
        for name in names:
            if name not in profile.columns:
                raise DatamillError(
                    "DM-READ-009",
                    f"there is no column `{name}`",
                    exit_code=ExitCode.INVALID,
                    file=spec.path,
                    field=f"params.{where}",
                    nearest=nearest(name, profile.columns),
                    expected=f"one of {', '.join(profile.columns)}",
                )
    for name, kind in spec.cast.items():
        if kind not in CAST_TYPES:
            raise DatamillError(
                "DM-READ-014",
                f"cannot cast `{name}` to `{kind}`",
                exit_code=ExitCode.INVALID,
                field=f"params.cast.{name}",
                nearest=nearest(kind, CAST_TYPES),
                expected=f"one of {', '.join(CAST_TYPES)}",
            )


def _field(spec: SourceSpec, key: str, name: str, column: ColumnProfile, num_rows: int) -> pa.Field:
    if key in spec.cast:
        dtype, arrow = spec.cast[key], CAST_TYPES[spec.cast[key]]
    else:
        dtype, arrow = resolve(column)
    metadata: dict[bytes, bytes] = {}
    if dtype == "json":
        metadata[DTYPE_KEY] = b"json"
    if name != key:
        metadata[SOURCE_KEY] = key.encode()
    return pa.field(name, arrow, nullable=column.num_values < num_rows, metadata=metadata or None)


def _free_name(key: str, profile: Profile) -> str:
    if key not in SYSTEM_COLUMNS:
        return key
    name = f"orig{key}"
    while name in profile.columns:
        name += "_"
    return name


def _column_findings(spec: SourceSpec, key: str, column: ColumnProfile, num_rows: int) -> list[Issue]:
    findings = []
    if key not in spec.cast and (mixture := _mixture(column)):
        fix = f"set params.cast: {{{key}: string}} (or int64, double, bool, json)"
        message = f"column `{key}` holds {mixture}"
        findings.append(Issue("DM-READ-103", message, severity="warning", file=spec.path, field=key, fix=fix))
    missing = num_rows - column.num_values
    if missing:
        message = f"column `{key}` has no value in {missing} of {num_rows} rows"
        context = {"column": key, "missing": missing, "rows": num_rows}
        findings.append(Issue("DM-READ-104", message, severity="note", file=spec.path, field=key, context=context))
    return findings


def _mixture(column: ColumnProfile) -> str | None:
    """What is mixed in a column, with the first place of each kind; None for a column of one kind."""
    dtype, _ = resolve(column)
    # Where inner types first disagree depends on how the data was cut, so that place is not shown.
    kinds = sorted((first.order, kind, first.place) for kind, first in column.kinds.items() if kind != "irregular")
    shown: dict[str, str] = {}
    for _, kind, place in kinds:
        shown.setdefault(_SPOKEN.get(kind, kind), place)
    if dtype == "json":
        how = "it is read as JSON text"
        if len(shown) == 1:
            inner = "whose keys or inner types differ" if "object" in shown else "whose inner types differ"
            return f"{next(iter(shown))}s {inner}; {how}"
    elif dtype == "string" and (len(shown) > 1 or "bigint" in column.kinds):
        how = "it is read as text, every value as written"
    else:
        return None
    return ", ".join(f"{kind} first at {place}" for kind, place in shown.items()) + f"; {how}"
