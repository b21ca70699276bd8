"""What the parts of dynamic selection hand to one another: tables of signals in, a plan out.

A *provider* turns a model and rows into a `SignalTable`; a *selector* is a policy over such tables and knows neither
model nor trainer, so every published number of a method can be checked without training anything. The trainer runs
the providers a selector asks for, gathers their tables, lets rank 0 decide and broadcasts the plan. Rows are named by
stable integers, their positions in the pool; the trainer maps them to `_id`. Importing this module costs numpy and
pydantic only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from datamill.errors import DatamillError, ExitCode

Ids = npt.NDArray[np.int64]
Values = npt.NDArray[np.floating[Any]]

DUMMY_ID = -1
"""Id of a row that only fills a batch so that every rank runs the same number of them; it never enters a table."""


class Params(BaseModel):
    """Base of a method's parameters: frozen, and a misspelt key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


@dataclass(frozen=True, slots=True, eq=False)
class SignalTable:
    """Measured values by row id.

    Attributes:
        key: name of the signal, e.g. `loss`.
        ids: (n,) distinct int64 pool positions, in no particular order.
        values: (n,) or (n, d) floats; row i belongs to `ids[i]`.

    Raises:
        DatamillError: `DM-SIG-001` for ids that repeat or do not match the values.
    """

    key: str
    ids: Ids
    values: Values

    def __post_init__(self) -> None:
        ids = np.asarray(self.ids, dtype=np.int64)
        values = np.asarray(self.values)
        if ids.ndim != 1 or values.ndim not in {1, 2} or len(values) != len(ids):
            raise DatamillError("DM-SIG-001", f"signal `{self.key}`: {values.shape} values for {ids.shape} ids")
        if len(np.unique(ids)) != len(ids) or (len(ids) and ids.min() < 0):
            raise DatamillError("DM-SIG-001", f"signal `{self.key}`: ids repeat or are negative")
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return len(self.ids)

    def sorted(self) -> "SignalTable":
        """The same table in ascending order of id."""
        order = np.argsort(self.ids, kind="stable")
        return SignalTable(self.key, self.ids[order], self.values[order])

    def at(self, ids: Ids) -> Values:
        """Finite values of `ids`, in that order.

        Raises:
            DatamillError: `DM-SIG-002` when a row has no value or one that is not finite.
        """
        table = self.sorted()
        wanted = np.asarray(ids, dtype=np.int64)
        place = np.searchsorted(table.ids, wanted)
        known = place < len(table)
        known[known] = table.ids[place[known]] == wanted[known]
        if not known.all():
            _refuse_rows(self.key, wanted[~known], "have no value")
        values: Values = table.values[place]
        finite = np.isfinite(values) if values.ndim == 1 else np.isfinite(values).all(axis=1)
        if not finite.all():
            _refuse_rows(self.key, wanted[~finite], "have a value that is not finite")
        return values

    @staticmethod
    def concat(tables: Sequence["SignalTable"]) -> "SignalTable":
        """One table of the rows of several (at least one), sorted by id; each row may occur in one only."""
        ids = np.concatenate([table.ids for table in tables])
        values = np.concatenate([table.values for table in tables])
        return SignalTable(tables[0].key, ids, values).sorted()


def _refuse_rows(key: str, ids: Ids, what: str) -> None:
    shown = ", ".join(str(i) for i in ids[:5])
    raise DatamillError(
        "DM-SIG-002",
        f"signal `{key}`: {len(ids)} candidate rows {what} (ids {shown}{', ...' if len(ids) > 5 else ''})",
        fix="score every candidate; look at the loss of these rows",
    )


@dataclass(frozen=True, slots=True)
class SignalRequest:
    """A signal a selector needs: the provider's key and its parameters (JSON-ready, part of every cache key)."""

    key: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class SelectionState:
    """Where training stands when a plan is decided.

    Attributes:
        candidates: ids the plan may choose from, distinct.
        step: optimizer steps done.
        update: number of plans decided before this one.
        updates: plans the whole run will decide.
        learning_rate: mean learning rate since the previous plan (weight of this checkpoint in LESS).
    """

    candidates: Ids
    step: int = 0
    update: int = 0
    updates: int = 1
    learning_rate: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class SelectionPlan:
    """The rows to train on next.

    Attributes:
        ids: chosen rows without repeats, in an order that is fit for training (never sorted by score).
        scores: a score for every scored candidate (larger is better); empty for a method that does not score.
        metadata: JSON-ready facts for ledger and report; `warnings` is a list of sentences.
    """

    ids: Ids
    scores: SignalTable
    metadata: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Selector(Protocol):
    """A policy. `select` depends on its arguments and on the loaded state alone, never on global randomness."""

    def signals(self) -> Sequence[SignalRequest]:
        """The tables `select` needs, whose keys are the keys of its first argument."""

    def select(
        self, signals: Mapping[str, SignalTable], budget: int, state: SelectionState, rng: np.random.Generator
    ) -> SelectionPlan:
        """Choose at most `budget` of `state.candidates`.

        Raises:
            DatamillError: `DM-SIG-002` when a candidate has no finite score, `DM-SIG-003` for a missing table.
        """

    def state_dict(self) -> dict[str, Any]:
        """Memory of past plans as plain Python and numpy values, for the checkpoint."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""


P = TypeVar("P", bound=Params)


@dataclass(frozen=True, slots=True)
class SelectorDeclaration(Generic[P]):
    """A registered selector; `factory(params)` builds it.

    `obsolete` names parameters of other tools' configurations that have no meaning here, each with the reason; the
    registry takes them out and says so, all other unknown keys are errors.
    """

    name: str
    summary: str
    params: type[P]
    factory: Callable[[P], Selector]
    reference: str = ""
    obsolete: Mapping[str, str] = field(default_factory=dict)


_SELECTORS: dict[str, SelectorDeclaration[Any]] = {}


def selector(
    name: str, summary: str, *, params: type[P], reference: str = "", obsolete: Mapping[str, str] | None = None
) -> Callable[[Callable[[P], Selector]], Callable[[P], Selector]]:
    """Register the decorated class (called with its parameters) as selector `name`.

    Args:
        name: the `component_name` users write.
        summary: one sentence for the catalogue.
        params: frozen pydantic model of the parameters.
        reference: paper or specification.
        obsolete: keys of a DataFlex configuration that mean nothing here, and why.
    """

    def register(factory: Any) -> Any:
        _SELECTORS[name] = SelectorDeclaration(name, summary, params, factory, reference, obsolete or {})
        return factory

    return register


def registered_selectors() -> Mapping[str, SelectorDeclaration[Any]]:
    """Selectors imported so far; `training.registry.selectors` has all."""
    return _SELECTORS


@dataclass(frozen=True, slots=True, eq=False)
class ScoringRows:
    """Rows to measure, as the trainer sees them.

    Attributes:
        ids: (n,) int64 row ids, the same on every rank.
        lengths: (n,) tokens of each row.
        collate: from a list of row ids to the model's batch, a mapping of tensors with at least `input_ids`,
            `attention_mask` and `labels` of shape (rows, tokens), rows in the order asked for. Optional entries of a
            neatly packed batch: `segments` (rows, tokens), 0 for padding and k for the k-th sample of the row, and
            `sample_ids` (rows, samples), `DUMMY_ID` where a row has fewer. Without them one row is one sample.
        groups: (n,) subtask of each row (LESS targets), or None when all belong together.
    """

    ids: Ids
    lengths: npt.NDArray[np.int64]
    collate: Callable[[Sequence[int]], Mapping[str, Any]]
    groups: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class AdamMoments:
    """Whole (unsharded) optimizer state of one parameter, and the settings of its group.

    Attributes:
        exp_avg: first moment, shape of the parameter, or None before the first step.
        exp_avg_sq: second moment.
        step: steps done.
        beta1: decay of the first moment.
        beta2: decay of the second moment.
        eps: added outside the root.
    """

    exp_avg: Any
    exp_avg_sq: Any
    step: int
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8


@dataclass(frozen=True, slots=True)
class ScoringContext:
    """What a provider may use; it must leave all of it as it was, bit for bit.

    Attributes:
        model: the unwrapped module (not the DDP or DeepSpeed shell).
        rows: pool rows to score.
        targets: target rows (LESS), or None.
        moments: Adam state by parameter name as in `model.named_parameters()`, gathered once per refresh; None when
            there is no optimizer yet.
        rank: of this process.
        world_size: number of processes; every one calls the provider with equal `rows` and `targets`.
        gather: turns the local table into the table of all ranks, on every rank; None in one process.
        reduce: sums a float64 array over all ranks; None in one process.
        token_budget: padded tokens of one scoring batch.
        packing: `none`, `neat` or `plain`, as the training data is packed.
    """

    model: Any
    rows: ScoringRows
    targets: ScoringRows | None = None
    moments: Mapping[str, AdamMoments] | None = None
    rank: int = 0
    world_size: int = 1
    gather: Callable[[SignalTable], SignalTable] | None = None
    reduce: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]] | None = None
    token_budget: int = 4096
    packing: str = "none"


class SignalProvider(Protocol):
    """Measures one signal."""

    key: str

    def check(self, context: ScoringContext) -> None:
        """Refuse before training starts what `compute` could not do (`DM-SIG-1xx`)."""

    def compute(self, context: ScoringContext) -> SignalTable:
        """The table of all `context.rows`, equal on every rank and for every world size, order and batch size."""


_PROVIDERS: dict[str, tuple[type[Params], Callable[[Any], SignalProvider]]] = {}


def provider(key: str, *, params: type[P]) -> Callable[[Callable[[P], Any]], Callable[[P], Any]]:
    """Register the decorated class (called with its parameters) as the provider of signal `key`."""

    def register(factory: Any) -> Any:
        _PROVIDERS[key] = (params, factory)
        return factory

    return register


def registered_providers() -> Mapping[str, tuple[type[Params], Callable[[Any], SignalProvider]]]:
    """Providers imported so far; `training.registry.build_provider` knows all."""
    return _PROVIDERS


def require(signals: Mapping[str, SignalTable], key: str) -> SignalTable:
    """The table `key`, or `DM-SIG-003` saying which ones are there."""
    if key in signals:
        return signals[key]
    raise DatamillError(
        "DM-SIG-003",
        f"the selector was not given the signal `{key}`",
        exit_code=ExitCode.STEP_FAILED,
        expected=f"{key} among {sorted(signals) or 'no signals'}",
    )
