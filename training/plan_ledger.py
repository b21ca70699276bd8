"""The plan ledger: which rows every optimizer step is given, decided before it is taken, never rewritten.

One JSON line a plan in `plan_ledger.jsonl`, flushed to disk before the first of its steps; scores of a selection in
`scores/plan-NNNN.parquet`; ids of all rows in `samples.parquet`. A run that is killed and resumed replays the lines
whose steps its checkpoint has begun and decides the later ones anew. `fate_of` answers what became of a row.
Cost: about 50 bytes a served row.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from datamill.errors import DatamillError, ExitCode
from datamill.training.contracts import SignalTable

LEDGER_FILE: Final = "plan_ledger.jsonl"
SAMPLES_FILE: Final = "samples.parquet"
SCORES_FOLDER: Final = "scores"


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One plan.

    Attributes:
        plan: 0-based number.
        start: first optimizer step it serves.
        end: step after the last.
        kind: `natural` order of the stock loop, or `selected`.
        windows: row positions by step, micro-batch and rank.
        ids: `_id` of the served rows, in order (step, micro-batch, rank, row).
        method: name of the method.
        fingerprints: of config, model and dataset.
        rng: state of torch's global generator when the plan was decided (hex of its sha256).
        time: seconds since the epoch, UTC; for people, nothing depends on it.
        candidates: rows the selection chose from.
        chosen: rows of the selection.
        scores_digest: sha256 of ids and scores of a selection.
        metadata: facts of the method.
    """

    plan: int
    start: int
    end: int
    kind: Literal["natural", "selected"]
    windows: list[list[list[list[int]]]]
    ids: list[str]
    method: str
    fingerprints: Mapping[str, str]
    rng: str
    time: float
    candidates: int = 0
    chosen: int = 0
    scores_digest: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def positions(self) -> list[int]:
        """Served positions in order."""
        return [row for window in self.windows for micro in window for batch in micro for row in batch]

    def digest(self) -> str:
        """Sha256 of what is trained: equal on every rank and after a resume."""
        return hashlib.sha256(json.dumps([self.start, self.end, self.windows]).encode()).hexdigest()


class PlanLedger:
    """Append-only list of plans of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LEDGER_FILE
        self.entries: list[PlanEntry] = read_entries(self.path)

    def append(self, entry: PlanEntry, *, write: bool = True) -> None:
        """Add a plan that begins where the last one ended; on disk before this returns.

        Args:
            entry: the plan.
            write: False on ranks that only follow.

        Raises:
            DatamillError: `DM-TRAIN-022` when the plan leaves a gap or overlaps.
        """
        expected = self.entries[-1].end if self.entries else 0
        if entry.start != expected or entry.end <= entry.start:
            raise DatamillError(
                "DM-TRAIN-022", f"a plan of steps {entry.start} to {entry.end} does not follow step {expected}"
            )
        if write:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(asdict(entry)) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
        self.entries.append(entry)

    def truncate(self, step: int, *, write: bool = True) -> None:
        """Forget the plans that begin at or after `step`, as a resume from that step does."""
        self.entries = [entry for entry in self.entries if entry.start < step]
        if write and self.path.exists():
            partial = self.path.with_suffix(".partial")
            with partial.open("w", encoding="utf-8") as stream:
                stream.writelines(json.dumps(asdict(entry)) + "\n" for entry in self.entries)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(self.path)

    def serving(self, step: int) -> PlanEntry | None:
        """The plan of `step`, if decided."""
        last = self.entries[-1] if self.entries else None
        return last if last is not None and last.start <= step < last.end else None


def read_entries(path: Path) -> list[PlanEntry]:
    """The plans in a ledger file; a last line cut short by a kill is left out.

    Raises:
        DatamillError: `DM-TRAIN-023` when any other line is damaged.
    """
    if not path.is_file():
        return []
    lines = path.read_bytes().split(b"\n")
    entries = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            entries.append(PlanEntry(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise DatamillError(
                "DM-TRAIN-023",
                f"the plan ledger is damaged: {error}",
                exit_code=ExitCode.INVALID,
                file=str(path),
                line=number,
                fix="start a new run; this one cannot be resumed exactly",
            ) from error
    return entries


def scores_digest(scores: SignalTable) -> str:
    """Sha256 of a score table in order of id."""
    table = scores.sorted()
    return hashlib.sha256(table.ids.tobytes() + table.values.astype("<f8").tobytes()).hexdigest()


def write_scores(folder: Path, plan: int, scores: SignalTable, chosen: Sequence[int], ids: Sequence[str]) -> Path:
    """Keep the scores of a selection; the file appears whole or not at all.

    Args:
        folder: of the run.
        plan: number of the plan.
        scores: by position, one column (the first is kept of several).
        chosen: positions selected.
        ids: `_id` by position.
    """
    table = scores.sorted()
    values = table.values if table.values.ndim == 1 else table.values[:, 0]
    picked = set(chosen)
    columns = {
        "id": pa.array([ids[i] for i in table.ids], pa.string()),
        "position": pa.array(table.ids, pa.int64()),
        "score": pa.array(values.astype("float64"), pa.float64()),
        "selected": pa.array([int(i) in picked for i in table.ids], pa.bool_()),
    }
    target = folder / SCORES_FOLDER / f"plan-{plan:04d}.parquet"
    _write_table(pa.table(columns), target)
    return target


def write_samples(folder: Path, ids: Sequence[str], dropped: Sequence[str]) -> None:
    """Record the id of every position, and the ids of rows LLaMA-Factory did not take."""
    positions: list[int | None] = [*range(len(ids)), *(None for _ in dropped)]
    columns = {"id": pa.array([*ids, *dropped], pa.string()), "position": pa.array(positions, pa.int64())}
    _write_table(pa.table(columns), folder / SAMPLES_FILE)


def _write_table(table: pa.Table, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    pq.write_table(table, partial)
    with partial.open("rb") as stream:
        os.fsync(stream.fileno())
    partial.replace(target)


@dataclass(frozen=True, slots=True)
class PlanFate:
    """What one plan did with a row.

    Attributes:
        plan: number of the plan.
        start: its first step.
        kind: natural or selected.
        score: of the row, when the plan scored it.
        selected: the row was among the chosen.
        steps: optimizer steps that trained on it.
    """

    plan: int
    start: int
    kind: str
    score: float | None
    selected: bool
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SampleFate:
    """What became of a row: dropped by LLaMA-Factory, or when it was scored, selected and trained on."""

    id: str
    dropped: bool
    plans: tuple[PlanFate, ...]

    @property
    def trained_steps(self) -> tuple[int, ...]:
        """Every optimizer step that saw the row."""
        return tuple(step for plan in self.plans for step in plan.steps)


def fate_of(folder: Path, sample_id: str) -> SampleFate:
    """Look up a row of a run.

    Args:
        folder: of the run (holds `plan_ledger.jsonl`).
        sample_id: `_id` of the row.

    Raises:
        DatamillError: `DM-TRAIN-016` when the run has no such row.
    """
    samples = folder / SAMPLES_FILE
    if not samples.is_file():
        raise DatamillError(
            "DM-TRAIN-016", "this folder holds no training run", exit_code=ExitCode.INVALID, file=str(folder)
        )
    table = pq.read_table(samples, filters=[("id", "=", sample_id)])
    if table.num_rows == 0:
        raise DatamillError(
            "DM-TRAIN-016",
            f"no row `{sample_id}` was given to this run",
            exit_code=ExitCode.INVALID,
            file=str(samples),
            expected="an `_id` of the training set",
        )
    positions = {int(p) for p in table["position"].to_pylist() if p is not None}
    if not positions:
        return SampleFate(sample_id, dropped=True, plans=())
    found = (_plan_fate(folder, entry, positions, sample_id) for entry in read_entries(folder / LEDGER_FILE))
    return SampleFate(sample_id, dropped=False, plans=tuple(fate for fate in found if fate is not None))


def _plan_fate(folder: Path, entry: PlanEntry, positions: set[int], sample_id: str) -> PlanFate | None:
    steps = tuple(
        entry.start + offset
        for offset, window in enumerate(entry.windows)
        if any(row in positions for micro in window for batch in micro for row in batch)
    )
    score, selected = None, bool(steps) and entry.kind == "selected"
    path = folder / SCORES_FOLDER / f"plan-{entry.plan:04d}.parquet"
    if entry.kind == "selected" and path.is_file():
        rows = pq.read_table(path, filters=[("id", "=", sample_id)]).to_pylist()
        if rows:
            score, selected = rows[0]["score"], any(row["selected"] for row in rows)
    if score is None and not steps:
        return None
    return PlanFate(entry.plan, entry.start, entry.kind, score, selected, steps)
