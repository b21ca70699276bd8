from typing import Any

import pytest

from datamill.training.schedule import (
    Span,
    selections,
    span_at,
    step_rule,
    total_steps,
    updates_per_epoch,
    window_sizes,
)
from datamill.training.section import DynamicSection

STATIC = DynamicSection()
LESS = DynamicSection(
    train_type="dynamic_select", component_name="less", warmup_step=10, update_step=25, update_times=4
)


def test_case_69_seven_updates_an_epoch() -> None:
    assert updates_per_epoch(101, 4, 2, 2) == 7
    asked = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "num_train_epochs": 3}
    assert total_steps(STATIC, asked, 101, 2) == 21


@pytest.mark.parametrize(
    ("rows", "batch", "accumulation", "processes", "updates"),
    [(41, 2, 4, 1, 6), (41, 2, 1, 1, 21), (8, 8, 1, 1, 1), (1, 8, 4, 2, 1), (16, 2, 2, 2, 2)],
)
def test_updates_per_epoch(rows: Any, batch: Any, accumulation: Any, processes: Any, updates: Any) -> None:
    assert updates_per_epoch(rows, batch, accumulation, processes) == updates


def test_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        updates_per_epoch(0, 1, 1, 1)


def test_rules_in_order() -> None:
    written = {"max_steps": 7, "num_train_epochs": 2}
    assert step_rule(LESS.model_copy(update={"train_step": 5}), written).total == 5
    assert step_rule(LESS, written).total == 7
    assert step_rule(LESS, {}).total == 110
    assert step_rule(LESS, {"num_train_epochs": 2}).total == 220
    assert step_rule(STATIC, {"num_train_epochs": 2}).total is None
    assert step_rule(None, {}).total is None


def test_rule_says_itself() -> None:
    assert "warmup_step 10 + update_step 25 x update_times 4: 110 steps" in step_rule(LESS, {}).rule
    assert "2 epochs" in step_rule(STATIC, {"num_train_epochs": 2.0}).rule


def test_spans_of_a_selection() -> None:
    assert span_at(LESS, 0, 6, 110) == Span(0, 10, -1, "natural")
    assert span_at(LESS, 9, 6, 110) == Span(0, 10, -1, "natural")
    assert span_at(LESS, 10, 6, 110) == Span(10, 35, 0, "selected")
    assert span_at(LESS, 109, 6, 110) == Span(85, 110, 3, "selected")
    assert span_at(LESS, 100, 6, 102) == Span(85, 102, 3, "selected")


def test_static_plans_are_stock_epochs() -> None:
    assert span_at(STATIC, 7, 6, 10) == Span(6, 10, -1, "natural")


@pytest.mark.parametrize("total", [1, 9, 10, 11, 35, 36, 110])
def test_spans_tile_the_run(total: Any) -> None:
    step, rounds = 0, 0
    while step < total:
        span = span_at(LESS, step, 6, total)
        assert span.start == step
        rounds += span.kind == "selected"
        step = span.end
    assert step == total
    assert rounds == selections(LESS, total)


def test_window_sizes_are_those_of_the_stock_loop() -> None:
    assert window_sizes(0, 7, 21, 4) == [4, 4, 4, 4, 4, 1, 4]
    assert window_sizes(5, 6, 21, 4) == [1]
    assert window_sizes(0, 3, 8, 4) == [4, 4, 4]
    assert window_sizes(0, 2, 3, 4) == [3, 3]
