"""Column contracts, checked before a row is read.

Each operator says which columns it reads (type, meaning, null or not) and what the schema is afterwards; this
module walks the plan with those declarations.
"""

from collections.abc import Sequence

from datamill.errors import Issue, nearest
from datamill.operators.declaration import ColumnType, Need, Schema


def check_need(need: Need, schema: Schema, step: str) -> Issue | None:
    """The finding about one column a step reads, or None.

    `DM-PLAN-020` missing column, `DM-PLAN-021` wrong type, `DM-PLAN-022` wrong meaning, `DM-PLAN-023` a column
    that may be null handed to an input that may not.
    """
    column = schema.get(need.column)
    if column is None:
        message = f"there is no column `{need.column}` here; columns: {', '.join(schema) or 'none'}"
        close = nearest(need.column, schema)
        return Issue("DM-PLAN-020", message, step=step, field=need.field, nearest=close)
    if need.dtypes and not any(_matches(column.dtype, wanted) for wanted in need.dtypes):
        expected = " or ".join(need.dtypes)
        message = f"column `{need.column}` is {column.dtype}"
        return Issue("DM-PLAN-021", message, step=step, field=need.field, expected=expected, fix=_cast_fix(need))
    if need.semantic and column.semantic != "any" and column.semantic not in need.semantic:
        expected = " or ".join(kind for kind in need.semantic if kind != "any")
        message = f"column `{need.column}` holds `{column.semantic}`"
        return Issue("DM-PLAN-022", message, step=step, field=need.field, expected=expected)
    if column.nullable and not need.nullable:
        message = f"column `{need.column}` may be null and this step does not take nulls"
        fix = "set on_null: drop or keep, or filter nulls out before"
        return Issue("DM-PLAN-023", message, step=step, field=need.field, fix=fix)
    return None


def _matches(dtype: str, wanted: str) -> bool:
    return dtype == wanted or (wanted.endswith("*") and dtype.startswith(wanted[:-1]))


def _cast_fix(need: Need) -> str | None:
    if "string" in need.dtypes:
        return f"add a columns.cast step with `{need.column}: string`"
    return None


def join_schemas(parents: Sequence[tuple[str, Schema]], step: str) -> tuple[Schema, list[Issue]]:
    """Union of the columns of several parents.

    A column missing from one parent becomes nullable. Finding `DM-PLAN-024` when two parents disagree about the
    type or the meaning of a column, or when one holds chats and another plain text.
    """
    issues: list[Issue] = []
    joined: dict[str, ColumnType] = {}
    owner: dict[str, str] = {}
    for name, schema in parents:
        for column, kind in schema.items():
            before = joined.get(column)
            if before is None:
                joined[column], owner[column] = kind, name
                continue
            if _clash(before, kind):
                message = (
                    f"`{owner[column]}` and `{name}` disagree about `{column}`: "
                    f"{before.dtype}/{before.semantic} and {kind.dtype}/{kind.semantic}"
                )
                issues.append(Issue("DM-PLAN-024", message, step=step, field="needs"))
            semantic = kind.semantic if before.semantic == "any" else before.semantic
            joined[column] = ColumnType(before.dtype, before.nullable or kind.nullable, semantic)
    issues += _shape_clash(parents, step)
    for column, kind in joined.items():
        if any(column not in schema for _, schema in parents):
            joined[column] = ColumnType(kind.dtype, nullable=True, semantic=kind.semantic)
    return joined, issues


def _clash(left: ColumnType, right: ColumnType) -> bool:
    known = "any" not in {left.semantic, right.semantic}
    return left.dtype != right.dtype or (known and left.semantic != right.semantic)


def _shape_clash(parents: Sequence[tuple[str, Schema]], step: str) -> list[Issue]:
    chats = [name for name, schema in parents if any(c.semantic == "chat" for c in schema.values())]
    texts = [name for name, _ in parents if name not in chats]
    if chats and texts:
        message = f"`{chats[0]}` holds chats and `{texts[0]}` does not: they cannot be joined"
        fix = "bring both branches to one shape first (format.chat)"
        return [Issue("DM-PLAN-024", message, step=step, field="needs", fix=fix)]
    return []
