"""The budget is hard: reserved before sending, settled afterwards, never passed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamill.errors import DatamillError, ExitCode
from datamill.services.llm.budget import PICO, Budget, Prices, Reservation, prompt_bound
from datamill.services.llm.exchange import Message
from datamill.services.llm.store import MemoryStore, open_store

FREE = Prices()


def held(budget: Budget, tokens_in: int, tokens_out: int) -> Reservation:
    reservation = budget.reserve(tokens_in, tokens_out)
    assert reservation is not None
    return reservation


def test_prices_are_exact() -> None:
    prices = Prices(0.15, 0.6)
    assert prices.cost(1_000_000, 0) == 150_000_000_000
    assert prices.cost(0, 1_000_000) == 600_000_000_000
    assert prices.cost(1, 1) == 750_000
    assert sum(prices.cost(1, 0) for _ in range(10)) == prices.cost(10, 0)
    assert Prices(1e-9, 0).cost(1, 0) == 1, "rounded up"


def test_settling_replaces_the_reservation() -> None:
    budget = Budget(MemoryStore(), Prices(2.0, 4.0), limit_usd=1.0)
    cost = budget.settle(held(budget, 1000, 1000), 100, 50)
    assert cost == 100 * 2 * 10**6 + 50 * 4 * 10**6
    assert budget.spent() == {"usd": cost / PICO, "tokens": 150}


def test_waits_for_others_and_stops_only_when_it_cannot_fit() -> None:
    budget = Budget(MemoryStore(), FREE, limit_tokens=100)
    first = held(budget, 30, 30)
    assert budget.reserve(30, 20) is None, "fits once the first is settled for less"
    budget.settle(first, 10, 10)
    second = held(budget, 30, 20)
    budget.settle(second, 30, 20)
    with pytest.raises(DatamillError) as stop:
        budget.reserve(30, 1)
    assert stop.value.code == "DM-LLM-010"
    assert stop.value.exit_code == ExitCode.BUDGET_EXCEEDED == 7
    assert "100 tokens" in str(stop.value)
    assert "70 tokens spent" in str(stop.value)
    assert "raise budget_tokens" in str(stop.value)


def test_money_is_named_in_dollars() -> None:
    budget = Budget(MemoryStore(), Prices(1.0, 1.0), limit_usd=0.0)
    with pytest.raises(DatamillError, match=r"budget of \$0\.000000 is used up.*may need \$0\.000002"):
        budget.reserve(1, 1)


def test_exactly_the_limit_is_allowed() -> None:
    budget = Budget(MemoryStore(), Prices(1.0, 0.0), limit_usd=0.000010)
    budget.settle(held(budget, 10, 0), 10, 0)
    with pytest.raises(DatamillError):
        budget.reserve(1, 0)


def test_without_limits_everything_is_counted_and_nothing_stopped() -> None:
    budget = Budget(MemoryStore(), Prices(1.0, 1.0))
    budget.settle(held(budget, 10**9, 10**9), 10**9, 10**9)
    assert budget.spent() == {"usd": 2000.0, "tokens": 2 * 10**9}


def test_the_budget_survives_a_resume(tmp_path: Path) -> None:
    first = Budget(open_store(tmp_path, "budget"), FREE, limit_tokens=100)
    first.settle(held(first, 80, 0), 80, 0)
    second = Budget(open_store(tmp_path, "budget"), FREE, limit_tokens=100)
    with pytest.raises(DatamillError):
        second.reserve(30, 0)


KILLED = """
import os, sys
from pathlib import Path
from datamill.services.llm.budget import Budget, Prices
from datamill.services.llm.store import open_store
Budget(open_store(Path(sys.argv[1]), "budget"), Prices(), limit_tokens=100).reserve(60, 0)
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_worker_had_reserved_counts_as_spent(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False).returncode == -9
    budget = Budget(open_store(tmp_path, "budget"), FREE, limit_tokens=100)
    with pytest.raises(DatamillError):
        budget.reserve(50, 0)
    assert held(budget, 40, 0)
    assert budget.spent()["tokens"] == 60


def test_reservations_of_this_process_are_not_taken_for_dead() -> None:
    store = MemoryStore()
    budget = Budget(store, FREE, limit_tokens=100)
    held(budget, 60, 0)
    assert budget.reserve(60, 0) is None
    with store.update() as data:
        assert [entry["pid"] for entry in data["held"].values()] == [os.getpid()]


@given(
    st.integers(0, 500),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.floats(0, 1), st.booleans()), max_size=60),
)
@settings(max_examples=100, deadline=None)
def test_no_interleaving_passes_the_limit(limit: int, calls: list[tuple[int, int, float, bool]]) -> None:
    budget = Budget(MemoryStore(), FREE, limit_tokens=limit)
    flying: list[Reservation] = []
    for tokens_in, tokens_out, share, finish in calls:
        try:
            reservation = budget.reserve(tokens_in, tokens_out)
        except DatamillError:
            reservation = None
        if reservation:
            flying.append(reservation)
        if finish and flying:
            done = flying.pop(0)
            budget.settle(done, int(done.tokens_in * share), int(done.tokens_out * share))
        worst = budget.spent()["tokens"] + sum(r.tokens_in + r.tokens_out for r in flying)
        assert worst <= limit


@pytest.mark.parametrize("text", ["plain words", "日本語のテキスト", "\U0001f600" * 20, "", "half \ud83d"])
def test_the_bound_covers_one_token_per_byte(text: str) -> None:
    bound = prompt_bound([Message("system", text), Message("user", text)])
    assert bound >= 2 * len(text.encode("utf-8", "replace"))
    assert prompt_bound([Message("user", text)], 100) == prompt_bound([Message("user", text)]) + 100
