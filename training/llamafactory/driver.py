"""Decides plans and serves their micro-batches to the stock training loop.

At the first step of a plan every rank measures the signals the method asks for, rank 0 decides, the choice goes to all
ranks, the plan is written to the ledger and only then trained on. Nothing here draws from a global generator, with one
exception that equality with stock training demands: the draw with which a stock loader seeds its workers, once an
epoch.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from datamill.errors import DatamillError
from datamill.training.events import EventWriter
from datamill.training.llamafactory.collectives import from_rank_zero, world
from datamill.training.llamafactory.selection import Choice, Selection
from datamill.training.llamafactory.stock_loader import StockLoader
from datamill.training.plan_ledger import PlanEntry, PlanLedger, write_samples, write_scores
from datamill.training.run_spec import RunSpec, jsonable, restored
from datamill.training.schedule import Span, span_at, window_sizes

STATE_FILE: Final = "datamill_state.json"


class PlanDriver:
    """One per trainer; created before training, set up at its first step."""

    def __init__(
        self, trainer: Any, spec: RunSpec, pool_ids: Sequence[str], dropped: Sequence[str], targets: Mapping[str, Any]
    ) -> None:
        assert spec.section is not None
        self.spec, self.section, self.trainer = spec, spec.section, trainer
        self.pool_ids = list(pool_ids)
        self.rank, self.world_size = world()
        self.events = EventWriter(spec.folder, active=self.rank == 0)
        self.ledger = PlanLedger(spec.folder)
        self.selection = Selection(trainer, spec.section, self.pool_ids, targets)
        self._epoch: Any = None
        self._plan: PlanEntry | None = None
        self._batches: Any = None
        self._loader: StockLoader | None = None
        self._spent = 0.0
        self._began = time.monotonic()
        if self.rank == 0:
            write_samples(spec.folder, self.pool_ids, dropped)

    def serve(self, epoch_iterator: Any, num_batches: int) -> list[Any]:
        """Collated micro-batches of this rank for the step the loop is at.

        Args:
            epoch_iterator: the stock iterator; only its identity is used, a new one means a new epoch.
            num_batches: micro-batches the stock loop will run before it steps.
        """
        loader = self._loader or self._set_up()
        if epoch_iterator is not self._epoch:
            self._epoch = epoch_iterator
            loader.draw_worker_seed()
        step = int(self.trainer.state.global_step)
        if self._plan is None or not self._plan.start <= step < self._plan.end:
            self._plan = self.ledger.serving(step) or self._decide(step, loader)
            self._batches = None
        window = self._plan.windows[step - self._plan.start]
        if len(window) != num_batches:
            raise DatamillError(
                "DM-TRAIN-024", f"step {step} needs {num_batches} micro-batches and the plan holds {len(window)}"
            )
        if self._batches is None:
            rest = self._plan.windows[step - self._plan.start :]
            self._batches = iter(loader.batches([micro[self.rank] for w in rest for micro in w], self._plan.start))
        return [next(self._batches) for _ in range(num_batches)]

    def save(self, folder: Path) -> None:
        """Put what a resume needs into a checkpoint folder, on disk before the stock files."""
        if self.rank != 0:
            return
        assert self._loader is not None
        state = {
            "step": int(self.trainer.state.global_step),
            "stream": self._loader.stream.state_dict(),
            "selection": jsonable(self.selection.state_dict()),
            "plans": [entry.digest() for entry in self.ledger.entries],
            "fingerprints": dict(self.spec.fingerprints),
            "world_size": self.world_size,
        }
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f"{STATE_FILE}.partial"
        with partial.open("w", encoding="utf-8") as stream:
            json.dump(state, stream)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(folder / STATE_FILE)
        self.events.emit("checkpoint", step=state["step"], folder=str(folder))

    def _set_up(self) -> StockLoader:
        loader = StockLoader(self.trainer, self.section)
        self._loader = loader
        self.selection.check()
        step = int(self.trainer.state.global_step)
        self.ledger.truncate(step, write=self.rank == 0)
        if step > 0:
            self._restore(loader, step)
        self.events.emit("start", step=step, steps=int(self.trainer.state.max_steps), rows=len(self.pool_ids))
        return loader

    def _restore(self, loader: StockLoader, step: int) -> None:
        assert self.spec.resume is not None
        state = json.loads((Path(self.spec.resume) / STATE_FILE).read_text(encoding="utf-8"))
        if [entry.digest() for entry in self.ledger.entries] != state["plans"]:
            raise DatamillError(
                "DM-TRAIN-009",
                f"the plan ledger is not the one that step {step} was reached with",
                file=str(self.ledger.path),
                fix="start a new run folder",
            )
        loader.stream.load_state_dict(state["stream"])
        self.selection.load_state_dict(restored(state["selection"]))

    def _decide(self, step: int, loader: StockLoader) -> PlanEntry:
        begun = time.monotonic()
        span = span_at(self.section, step, loader.epoch_steps, int(self.trainer.state.max_steps))
        sizes = window_sizes(span.start, span.end, loader.micro_batches, loader.accumulation)
        choice = None
        if span.kind == "selected":
            choice = self.selection.choose(span, sum(sizes) * loader.micro_rows)
            loader.stream.retarget(choice.positions)
        else:
            loader.stream.retarget(range(len(self.pool_ids)))
        flat = iter(loader.stream.take(sum(sizes)))
        windows = [[next(flat) for _ in range(size)] for size in sizes]
        self._agree(windows)
        entry = self._record(span, windows, choice)
        self._spent += time.monotonic() - begun
        self._report(entry, choice, time.monotonic() - begun)
        return entry

    def _agree(self, windows: list[Any]) -> None:
        if from_rank_zero(windows) != windows:
            raise DatamillError("DM-TRAIN-025", f"rank {self.rank} arrived at another plan than rank 0")

    def _record(self, span: Span, windows: list[Any], choice: Choice | None) -> PlanEntry:
        number = len(self.ledger.entries)
        if choice is not None and len(choice.scores) and self.rank == 0:
            write_scores(self.spec.folder, number, choice.scores, choice.positions, self.pool_ids)
        entry = PlanEntry(
            plan=number,
            start=span.start,
            end=span.end,
            kind=span.kind,
            windows=windows,
            ids=[self.pool_ids[i] for window in windows for micro in window for batch in micro for i in batch],
            method=str(self.section.component_name or self.section.train_type),
            fingerprints=self.spec.fingerprints,
            rng=StockLoader.rng_digest(),
            time=time.time(),
            candidates=choice.candidates if choice else len(self.pool_ids),
            chosen=len(choice.positions) if choice else len(self.pool_ids),
            scores_digest=choice.digest if choice else None,
            metadata=jsonable(choice.metadata) if choice else {},
        )
        self.ledger.append(entry, write=self.rank == 0)
        return entry

    def _report(self, entry: PlanEntry, choice: Choice | None, seconds: float) -> None:
        facts = choice.facts() if choice else {}
        self.events.emit(
            "plan",
            plan=entry.plan,
            step=entry.start,
            until=entry.end,
            kind=entry.kind,
            candidates=entry.candidates,
            chosen=entry.chosen,
            seconds=round(seconds, 3),
            selection_share=round(self._spent / max(time.monotonic() - self._began, 1e-9), 4),
            **facts,
        )
