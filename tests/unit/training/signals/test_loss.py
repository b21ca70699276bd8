"""Losses by sample: closed forms for masks, segments and kept positions."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from datamill.errors import DatamillError  # noqa: E402
from datamill.training.contracts import ScoringContext, ScoringRows, SignalTable  # noqa: E402
from datamill.training.signals.batches import iterate  # noqa: E402
from datamill.training.signals.loss import LossParams, LossProvider, membership, sample_losses  # noqa: E402

pytestmark = pytest.mark.train


def logits_with_losses(losses: list[list[float]]) -> Any:
    """Two-word logits under which predicting word 0 at each place costs exactly the given loss."""
    wanted = torch.tensor(losses, dtype=torch.float64)
    return torch.stack([torch.zeros_like(wanted), torch.log(torch.exp(wanted) - 1)], dim=-1)


def test_the_mean_is_over_supervised_tokens_of_each_row() -> None:
    logits = logits_with_losses([[1, 2, 3, 9], [5, 7, 9, 9]])
    labels = torch.tensor([[-100, 0, 0, 0], [-100, 0, -100, -100]])
    assert sample_losses(logits, labels).tolist() == pytest.approx([2.0, 5.0])


def test_a_row_without_supervised_tokens_is_nan() -> None:
    losses = sample_losses(logits_with_losses([[1, 1], [1, 1]]), torch.tensor([[0, -100], [-100, 0]]))
    assert math.isnan(losses[0])
    assert losses[1].item() == pytest.approx(1.0)


def test_segments_are_separate_and_boundaries_do_not_count() -> None:
    logits = logits_with_losses([[1, 100, 3, 5, 50, 70]])
    labels = torch.zeros(1, 6, dtype=torch.long)
    segments = torch.tensor([[1, 1, 2, 2, 2, 0]])
    assert sample_losses(logits, labels, segments).tolist() == pytest.approx([1.0, 4.0])


def test_segments_missing_from_a_row_are_nan() -> None:
    segments = torch.tensor([[1, 1, 2, 2], [1, 1, 1, 0]])
    losses = sample_losses(
        logits_with_losses([[1, 9, 3, 9], [5, 7, 9, 9]]), torch.zeros(2, 4, dtype=torch.long), segments
    )
    assert losses[:3].tolist() == pytest.approx([1.0, 3.0, 6.0])
    assert math.isnan(losses[3])
    assert membership(segments).long().sum(-1).tolist() == [[2, 2], [3, 0]]


def test_only_kept_positions_are_needed() -> None:
    logits = logits_with_losses([[1, 2, 3, 9]])
    labels = torch.tensor([[-100, -100, 0, 0]])
    kept = torch.tensor([1, 2])
    assert sample_losses(logits[:, kept], labels, kept=kept).tolist() == sample_losses(logits, labels).tolist()


def test_half_precision_logits_are_summed_in_float32() -> None:
    losses = sample_losses(logits_with_losses([[1, 2, 3, 9]]).bfloat16(), torch.zeros(1, 4, dtype=torch.long))
    assert losses.dtype == torch.float32


class Counting(torch.nn.Module):
    """Predicts uniformly over `width` words; remembers the rows it was given."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.width, self.seen = width, []

    def forward(self, input_ids: Any, attention_mask: Any, use_cache: bool) -> Any:
        assert not use_cache
        assert not self.training
        self.seen.append(input_ids[:, 0].tolist())
        return SimpleNamespace(logits=torch.zeros(*input_ids.shape, self.width) * self.weight)


def collate(ids: Any) -> dict[str, Any]:
    tokens = torch.tensor([[i] * 3 for i in ids])
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": torch.zeros_like(tokens)}


def context(model: Any, count: int = 5, **changes: Any) -> ScoringContext:
    rows = ScoringRows(np.arange(10, 10 + count), np.full(count, 3), collate)
    return ScoringContext(model, rows, token_budget=6, **changes)


def test_every_row_is_measured_once_and_the_next_word_only() -> None:
    model = Counting(7).train()
    table = LossProvider(LossParams()).compute(context(model))
    assert table.ids.tolist() == [10, 11, 12, 13, 14]
    assert table.values == pytest.approx(np.full(5, math.log(7)))
    assert sorted(i for batch in model.seen for i in batch) == [10, 11, 12, 13, 14]
    assert model.training


def test_fillers_run_but_are_not_reported() -> None:
    models = [Counting(7), Counting(7)]
    tables = [LossProvider(LossParams()).compute(context(m, rank=r, world_size=2)) for r, m in enumerate(models)]
    assert [len(model.seen) for model in models] == [2, 2]
    assert sorted(tables[0].ids.tolist() + tables[1].ids.tolist()) == [10, 11, 12, 13, 14]


def test_gathering_happens_once_even_on_a_rank_without_rows() -> None:
    calls = []

    def gather(table: SignalTable) -> SignalTable:
        calls.append(len(table))
        return table

    LossProvider(LossParams()).compute(context(Counting(7), count=1, rank=1, world_size=2, gather=gather))
    assert calls == [0]


def test_packed_rows_report_the_samples_in_them() -> None:
    def packed(ids: Any) -> dict[str, Any]:
        batch = collate(ids)
        segments = torch.tensor([[1, 1, 2]] * len(ids))
        return batch | {"segments": segments, "sample_ids": torch.tensor([[i * 10, i * 10 + 1, -1] for i in ids])}

    scoring = ScoringContext(Counting(2), ScoringRows(np.array([4, 5]), np.array([3, 3]), packed), packing="neat")
    ((_, samples, rows),) = list(iterate(scoring, scoring.rows))
    assert samples.tolist() == [40, 41, 50, 51]
    assert rows.tolist() == [4, 4, 5, 5]


@pytest.mark.parametrize("packing", ["plain", "neat"])
def test_rows_packed_without_boundaries_are_refused(packing: str) -> None:
    with pytest.raises(DatamillError, match="DM-SIG-101") as caught:
        LossProvider(LossParams()).check(context(Counting(2), packing=packing))
    assert "neat_packing: true" in (caught.value.issues[0].fix or "")
