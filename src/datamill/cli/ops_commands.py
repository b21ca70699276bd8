"""`datamill ops ...`: the operator catalogue."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from datamill.cli.session import Session, usage_error


def register(app: typer.Typer) -> None:
    """Add the command group to the tree."""
    group = typer.Typer(help="The operator catalogue.", no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_operators)
    group.command("show")(show)
    group.command("search")(search)
    group.command("new")(new)
    app.add_typer(group, name="ops")


def _facts(operator: Any) -> dict[str, Any]:
    return {
        "id": operator.id, "family": operator.family, "summary": operator.summary, "effect": operator.effect.value,
        "bound": operator.bound.value, "version": operator.version, "reference": operator.reference,
        "deterministic": operator.deterministic,
    }  # fmt: skip


def _listing(operators: list[Any]) -> str:
    width = max((len(operator.id) for operator in operators), default=0)
    return "\n".join(f"{o.id:<{width}}  {o.effect.value:<9} {o.bound.value:<4} {o.summary}" for o in operators)


def list_operators(
    context: typer.Context, family: Annotated[str | None, typer.Option("--family", help="only this family")] = None
) -> None:
    """All operators: id, effect on rows, limiting resource, summary."""
    session: Session = context.obj
    from datamill.errors import nearest
    from datamill.operators.registry import catalogue

    operators = [o for o in catalogue().values() if family is None or o.family == family]
    if not operators:
        families = sorted({o.family for o in catalogue().values()})
        close = nearest(family or "", families)
        hint = f"; did you mean `{close}`?" if close else f"; families: {', '.join(families)}"
        raise usage_error(f"there is no family `{family}`{hint}", "datamill ops list")
    session.result([_facts(o) for o in operators], _listing(operators))


def show(context: typer.Context, operator_id: Annotated[str, typer.Argument(help="operator id")]) -> None:
    """One operator: parameters with defaults and ranges, effect, reasons, reference."""
    session: Session = context.obj
    from datamill.operators.registry import find

    operator = find(operator_id)
    schema = operator.params.model_json_schema()
    lines = [f"{operator.id}  {operator.summary}", f"  effect {operator.effect.value}, bound {operator.bound.value}"]
    lines += [f"  {name}: {_describe(info)}" for name, info in schema.get("properties", {}).items()]
    if operator.reasons:
        lines.append(f"  reasons in the ledger: {', '.join(operator.reasons)}")
    if operator.reference:
        lines.append(f"  source: {operator.reference}")
    session.result({**_facts(operator), "params": schema, "reasons": list(operator.reasons)}, "\n".join(lines))


def _describe(info: dict[str, Any]) -> str:
    kind = (
        info.get("type") or "/".join(str(o.get("type", o.get("const", "?"))) for o in info.get("anyOf", [])) or "value"
    )
    if "enum" in info:
        kind = "|".join(str(value) for value in info["enum"])
    bounds = [
        f"{sign} {info[key]}"
        for key, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="))
        if key in info
    ]
    default = f" = {info['default']!r}" if "default" in info else " (required)"
    limits = f" [{', '.join(bounds)}]" if bounds else ""
    return f"{kind}{default}{limits}  {info.get('description', '')}"


def search(context: typer.Context, words: Annotated[list[str], typer.Argument(help="words, in any language")]) -> None:
    """Operators whose id, summary or keywords fit."""
    session: Session = context.obj
    from datamill.operators.registry import catalogue

    wanted = [word.casefold() for word in words]

    def score(operator: Any) -> int:
        text = f"{operator.id} {operator.summary} {' '.join(operator.keywords)}".casefold()
        return sum(word in text for word in wanted)

    found = sorted((o for o in catalogue().values() if score(o)), key=lambda o: (-score(o), o.id))
    session.result([_facts(o) for o in found], _listing(found) or f"nothing fits `{' '.join(words)}`")


OPERATOR_TEMPLATE = '''"""`{id}`: say what it promises, what it costs, and which paper or rule it follows."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from datamill.operators.declaration import Context, Effect, Need, Params, operator, text_need
from datamill.operators.outcomes import keep_where
from datamill.services.engines.protocol import Outcome


class {name}Params(Params):
    """Parameters of `{id}`."""

    column: str = Field("text", description="column to look at")
    min_chars: int = Field(1, ge=0, description="least number of characters")


def _reads(params: {name}Params) -> Sequence[Need]:
    return [text_need(params.column, param="params.column")]


@operator(
    "{id}", "Keeps rows with enough characters.", effect=Effect.FILTER, params={name}Params, reads=_reads,
    reasons=("too_few_characters",),
)  # fmt: skip
def run(batch: pa.Table, params: {name}Params, ctx: Context) -> Outcome:
    """Keep rows of `batch` whose column has at least `min_chars` characters."""
    length = pc.utf8_length(batch[params.column])
    mask = pc.greater_equal(length, params.min_chars)
    return keep_where(batch, mask, reason="too_few_characters", value=length, threshold=float(params.min_chars))
'''

TEST_TEMPLATE = """import pyarrow as pa

from datamill.operators.declaration import Context
from datamill.operators.registry import find


def test_short_rows_leave_with_a_reason() -> None:
    operator = find("{id}")
    batch = pa.table({{"_id": ["a", "b"], "_ord": [0, 1], "_src": ["f:1", "f:2"], "text": ["long enough", "no"]}})
    outcome = operator.run(batch, operator.params(min_chars=5), Context("step"))
    assert outcome.rows["_id"].to_pylist() == ["a"]
    assert outcome.fates["reason"].to_pylist() == ["too_few_characters"]
"""


def new(context: typer.Context, operator_id: Annotated[str, typer.Argument(help="family.verb_object")]) -> None:
    """Write the skeleton of a new operator and its test."""
    session: Session = context.obj
    if not re.fullmatch(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", operator_id):
        raise usage_error(f"`{operator_id}` is not of the form family.verb_object")
    family, verb = operator_id.split(".")
    name = "".join(part.capitalize() for part in f"{family}_{verb}".split("_"))
    files = {
        Path("operators") / family / f"{verb}.py": OPERATOR_TEMPLATE.format(id=operator_id, name=name),
        Path("operators") / family / "__init__.py": f'"""Operators of the family `{family}`."""\n',
        Path("tests/unit/operators") / family / f"test_{verb}.py": TEST_TEMPLATE.format(id=operator_id),
    }
    written = []
    for relative, text in files.items():
        path = session.project / relative
        if path.exists():
            if path.name == "__init__.py":
                continue
            raise usage_error(f"{relative} exists")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(str(relative))
    session.result({"written": written}, "\n".join(written))
