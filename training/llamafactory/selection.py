"""Runs a method on a live trainer: candidates, signals, choice.

Every rank measures; the tables are the same on all of them; rank 0 chooses and the choice, with the state of the
method after it, goes to all ranks. Which rows a limited candidate window holds depends on seed, round and `_id` alone,
not on where a row lies in its file.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
import xxhash

from datamill.errors import DatamillError
from datamill.training.contracts import Ids, ScoringContext, ScoringRows, SelectionState, SignalTable
from datamill.training.llamafactory.collectives import from_rank_zero, gather_table, reduce_sum, world
from datamill.training.llamafactory.optimizer_state import adam_moments
from datamill.training.plan_ledger import scores_digest
from datamill.training.registry import build_provider, build_selector
from datamill.training.schedule import Span, selections
from datamill.training.section import DynamicSection

IGNORED = -100
"""Label of a token that is not learned."""

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What a selection came to.

    Attributes:
        positions: chosen rows, ascending.
        scores: of the candidates; empty for methods that do not score.
        candidates: rows the method chose from.
        digest: sha256 of the scores.
        metadata: facts of the method.
        overlap: share of these rows that the selection before chose too; None for the first.
        scoring_seconds: time the signals took.
    """

    positions: list[int]
    scores: SignalTable
    candidates: int
    digest: str
    metadata: Mapping[str, Any]
    overlap: float | None
    scoring_seconds: float

    def facts(self) -> dict[str, Any]:
        """Fields of the `plan` event."""
        values = self.scores.values if self.scores.values.ndim == 1 else self.scores.values[:, 0]
        quantiles = np.quantile(values, QUANTILES).tolist() if len(values) else []
        return {
            "overlap": self.overlap,
            "score_quantiles": quantiles,
            "scoring_seconds": round(self.scoring_seconds, 3),
            "warnings": list(self.metadata.get("warnings", [])),
        }


class Selection:
    """The method of a run and what it remembers."""

    def __init__(
        self, trainer: Any, section: DynamicSection, pool_ids: Sequence[str], targets: Mapping[str, Any]
    ) -> None:
        self._trainer, self._section, self._pool_ids, self._targets = trainer, section, pool_ids, targets
        self._lengths, self._supervised = _measure(trainer.train_dataset)
        self._previous: list[int] = []
        self._rate_sum, self._rate_steps = 0.0, 0
        self._selector: Any = None
        self._providers: list[Any] = []
        if section.train_type == "dynamic_select":
            self._selector = build_selector(str(section.component_name), section.component_params)
            self._providers = [build_provider(request) for request in self._selector.signals()]

    def note_learning_rate(self, rate: float) -> None:
        """Remember the rate of an optimizer step; LESS weighs a checkpoint by the mean since the last selection."""
        self._rate_sum += rate
        self._rate_steps += 1

    def check(self) -> None:
        """Let every provider refuse what it could not measure, before the first step."""
        if self._providers:
            context = self._context(self.candidates(0)[:1])
            for provider in self._providers:
                provider.check(context)

    def candidates(self, update: int) -> Ids:
        """Positions the round `update` chooses from, ascending: the pool, or a window drawn by keyed hash.

        Rows without a supervised token (their prompt fills the cut-off) can neither be scored nor teach; they are
        no candidates.
        """
        window = self._section.candidate_window
        if window is None or window >= len(self._supervised):
            return self._supervised
        prefix = f"{self._section.seed}\0{update}\0"
        keys = [
            (xxhash.xxh3_128_digest((prefix + self._pool_ids[place]).encode()), int(place))
            for place in self._supervised
        ]
        return np.sort(np.asarray([place for _, place in sorted(keys)[:window]], dtype=np.int64))

    def choose(self, span: Span, budget: int) -> Choice:
        """Select at most `budget` rows for the steps of `span`."""
        candidates = self.candidates(span.update)
        begun = time.monotonic()
        context = self._context(candidates)
        signals = {provider.key: provider.compute(context) for provider in self._providers}
        seconds = time.monotonic() - begun
        if world()[0] == 0:
            plan = self._selector.select(signals, budget, self._state(candidates, span), self._generator(span.update))
            decided = ([int(i) for i in plan.ids], plan.scores, dict(plan.metadata), self._selector.state_dict())
        else:
            decided = None
        positions, scores, metadata, state = from_rank_zero(decided)
        self._selector.load_state_dict(state)
        return self._choice(positions, scores, metadata, candidates, seconds)

    def _choice(
        self, positions: list[int], scores: SignalTable, metadata: Mapping[str, Any], candidates: Any, seconds: float
    ) -> Choice:
        if not positions:
            raise DatamillError(
                "DM-TRAIN-020", f"`{self._section.component_name}` chose no row of {len(candidates)} candidates"
            )
        before = set(self._previous)
        overlap = sum(i in before for i in positions) / len(positions) if before else None
        self._previous = sorted(positions)
        self._rate_sum, self._rate_steps = 0.0, 0
        digest = scores_digest(scores) if len(scores) else ""
        return Choice(sorted(positions), scores, len(candidates), digest, metadata, overlap, seconds)

    def _state(self, candidates: Any, span: Span) -> SelectionState:
        rate = self._rate_sum / self._rate_steps if self._rate_steps else 1.0
        total = selections(self._section, int(self._trainer.state.max_steps))
        return SelectionState(candidates, span.start, span.update, total, rate)

    def _generator(self, update: int) -> np.random.Generator:
        return np.random.default_rng([self._section.seed, update])

    def _context(self, candidates: Any) -> ScoringContext:
        trainer = self._trainer
        rank, world_size = world()
        several = world_size > 1
        steps = int(trainer.state.global_step)
        sharded = bool(trainer.is_deepspeed_enabled)
        return ScoringContext(
            model=trainer.accelerator.unwrap_model(trainer.model),
            rows=self._rows(trainer.train_dataset, candidates, self._lengths[candidates], None),
            targets=self._target_rows(),
            moments=adam_moments(trainer.model, trainer.optimizer, steps, deepspeed=sharded) if steps else None,
            rank=rank,
            world_size=world_size,
            gather=gather_table if several else None,
            reduce=reduce_sum if several else None,
            token_budget=self._section.scoring_token_budget,
            packing="none",
        )

    def _rows(self, dataset: Any, ids: Any, lengths: Any, groups: Any) -> ScoringRows:
        def collate(rows: Sequence[int]) -> Mapping[str, Any]:
            from accelerate.utils import send_to_device

            batch = self._trainer.data_collator([dataset[int(i)] for i in rows])
            moved: Mapping[str, Any] = send_to_device(batch, self._trainer.accelerator.device)
            return moved

        return ScoringRows(ids, lengths, collate, groups)

    def _target_rows(self) -> ScoringRows | None:
        if not self._targets:
            return None
        from datasets import concatenate_datasets

        rows = concatenate_datasets(list(self._targets.values()))
        sizes = [len(part) for part in self._targets.values()]
        groups = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        lengths, supervised = _measure(rows)
        return self._rows(rows, supervised, lengths[supervised], groups[supervised])

    def state_dict(self) -> dict[str, Any]:
        """What a resume needs, with numpy arrays left as they are."""
        policy = self._selector.state_dict() if self._selector is not None else {}
        return {"policy": policy, "previous": self._previous, "rates": [self._rate_sum, self._rate_steps]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        if self._selector is not None:
            self._selector.load_state_dict(state["policy"])
        self._previous = list(state["previous"])
        self._rate_sum, self._rate_steps = float(state["rates"][0]), int(state["rates"][1])


def _measure(dataset: Any) -> tuple[Ids, Ids]:
    """Tokens of every row, and positions of the rows with at least one supervised token."""
    table = dataset.with_format("arrow")[:]
    tokens = table["input_ids"].combine_chunks()
    lengths = pc.list_value_length(tokens).to_numpy(zero_copy_only=False).astype(np.int64)
    if "labels" not in table.column_names:  # pre-training: every token but the first is predicted
        return lengths, np.flatnonzero(lengths > 1)
    labels = table["labels"].combine_chunks()
    flags = np.concatenate([[0], np.cumsum(labels.flatten().to_numpy(zero_copy_only=False) != IGNORED)])
    ends = np.cumsum(lengths)
    starts = ends - lengths
    after_first = flags[ends] - flags[np.minimum(starts + 1, ends)]  # nothing predicts the first token
    return lengths, np.flatnonzero(after_first > 0)
