"""How an operator declares itself: one declaration feeds validator, planner, docs and forms.

Two shapes of operator exist. A *batch* operator is a pure function of a table and works on any subset of rows.
A *global* operator looks at a whole dataset through the engine protocol and returns *decisions*: a dataset with
`_id` plus fate columns and, where it declares them, new columns. The runner applies decisions to rows, so that
the books balance in one place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from datamill.services.engines.protocol import Dataset, Outcome


class Effect(StrEnum):
    """What an operator does to the number of rows."""

    SOURCE = "source"
    MAP = "map"
    FILTER = "filter"
    EXPAND = "expand"
    AGGREGATE = "aggregate"
    GLOBAL = "global"
    JOIN = "join"
    SINK = "sink"


class Bound(StrEnum):
    """The resource that limits an operator; the scheduler and the cost warning read it."""

    IO = "io"
    CPU = "cpu"
    GPU = "gpu"
    LLM = "llm"


class Params(BaseModel):
    """Base of every operator's parameters: frozen, and a misspelt key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


OnNull = Literal["drop", "keep", "error"]
"""Policy for a null in a column the operator reads: leave the row out with reason `null_<column>`, pass it on
untouched, or refuse the plan when the column may be null."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """Type of one column as the plan sees it.

    Attributes:
        dtype: Arrow type name: `string`, `int64`, `double`, `bool`, `json` (mixed values kept as written), `list<...>`.
        nullable: whether a null may occur.
        semantic: `text`, `chat`, `embedding`, `math_answer`, `label`, `number`, `url`, `preference`, `any`.
    """

    dtype: str
    nullable: bool = True
    semantic: str = "any"


Schema = Mapping[str, ColumnType]


@dataclass(frozen=True, slots=True)
class Need:
    """A column an operator reads. `semantic` and `dtypes` empty mean anything goes."""

    column: str
    dtypes: tuple[str, ...] = ()
    semantic: tuple[str, ...] = ()
    nullable: bool = True
    field: str | None = None
    """Dotted path of the parameter that names the column, for the error message."""


TEXT = ("text", "math_answer", "url", "label", "any")


def text_need(column: str, on_null: OnNull = "drop", param: str = "params.columns") -> Need:
    """The usual need of a text operator: a string column that is not an embedding or a chat."""
    return Need(column, dtypes=("string",), semantic=TEXT, nullable=on_null != "error", field=param)


@dataclass(frozen=True, slots=True)
class Context:
    """What the runner hands to an operator besides its rows; nothing in it may change a result silently.

    Attributes:
        step: step id, for messages.
        seed: seed of the step, derived from the workflow's seed and the step id.
        project: root against which relative paths resolve.
        resources: what `prepare` returned, the same on every worker.
        inputs: named datasets, for operators with side inputs (`against`, `eval`).
        settings: services an LLM operator needs (endpoint, cache folder, limits); never secrets.
    """

    step: str
    seed: int = 0
    project: Path = Path()
    resources: Any = None
    inputs: Mapping[str, Dataset] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


P = TypeVar("P", bound=Params)
BatchRun = Callable[[pa.Table, P, Context], Outcome]
GlobalRun = Callable[[Sequence[Dataset], P, Context], Dataset]


@dataclass(frozen=True, slots=True)
class Operator(Generic[P]):
    """An operator's declaration. See `operator` for the meaning of the fields."""

    FAMILY_SEPARATOR: ClassVar[str] = "."

    id: str
    summary: str
    params: type[P]
    run: Callable[..., Any]
    effect: Effect
    bound: Bound
    reads: Callable[[P], Sequence[Need]]
    writes: Callable[[P, Schema], Schema]
    version: int
    deterministic: bool
    reference: str
    keywords: tuple[str, ...]
    files: Callable[[P], Sequence[str]]
    prepare: Callable[[P, Context], Any] | None
    check: Callable[[P], Sequence[tuple[str, str, str]]]
    reasons: tuple[str, ...]
    side_inputs: Callable[[P], Sequence[str]]

    @property
    def family(self) -> str:
        """`dedup` for `dedup.minhash`."""
        return self.id.split(self.FAMILY_SEPARATOR, 1)[0]

    @property
    def is_global(self) -> bool:
        """Whether the operator needs to see all rows."""
        return self.effect in {Effect.GLOBAL, Effect.AGGREGATE}


_REGISTERED: dict[str, Operator[Any]] = {}


def _same_schema(_params: Any, schema: Schema) -> Schema:
    return schema


def _nothing(_params: Any) -> Sequence[Any]:
    return ()


def operator(
    id: str,  # noqa: A002  the word users write
    summary: str,
    *,
    effect: Effect,
    params: type[P],
    bound: Bound = Bound.CPU,
    reads: Callable[[P], Sequence[Need]] = _nothing,
    writes: Callable[[P, Schema], Schema] = _same_schema,
    version: int = 1,
    deterministic: bool = True,
    reference: str = "",
    keywords: Sequence[str] = (),
    files: Callable[[P], Sequence[str]] = _nothing,
    prepare: Callable[[P, Context], Any] | None = None,
    check: Callable[[P], Sequence[tuple[str, str, str]]] = _nothing,
    reasons: Sequence[str] = (),
    side_inputs: Callable[[P], Sequence[str]] = _nothing,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as operator `id`.

    Args:
        id: `family.verb_object`.
        summary: one sentence for catalogue and planner.
        effect: what happens to the number of rows.
        params: the frozen pydantic model of the parameters.
        bound: limiting resource.
        reads: the columns the operator needs under given parameters.
        writes: the schema after the step.
        version: raised whenever the same input would give another output; part of every content key.
        deterministic: whether equal inputs give equal outputs without a cache.
        reference: paper or specification.
        keywords: words of users, in any language, that mean this operator.
        files: paths among the parameters; their content becomes part of the plan digest.
        prepare: runs once per step on the driver; the (picklable) result reaches every worker as `ctx.resources`.
        check: further findings about parameters as `(severity, field, message)`, e.g. a hopeless S-curve.
        reasons: every reason slug the operator may put into a fate.
        side_inputs: names of inputs or steps among the parameters (`against`); they arrive as `ctx.inputs`.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _REGISTERED[id] = Operator(
            id, summary, params, function, effect, bound, reads, writes, version, deterministic, reference,
            tuple(keywords), files, prepare, check, tuple(reasons), side_inputs,
        )  # fmt: skip
        return function

    return register


def registered() -> Mapping[str, Operator[Any]]:
    """Operators whose modules have been imported so far; use `operators.registry` for the full catalogue."""
    return _REGISTERED
