"""A hard budget: money and tokens are reserved before a request is sent, and settled when its usage is known.

Reservation is an upper bound (a token of byte-level BPE has at least one byte, and the completion has a limit), so
what was spent plus what may still be spent never passes the budget, whatever number of workers send at once. A
request whose answer was lost (timeout, dropped connection) may have been billed and is charged its reservation.
Money is kept in whole pico-dollars, so sums are exact. State is shared through a store and survives a resume.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from datamill.errors import DatamillError, ExitCode
from datamill.services.llm.exchange import Message
from datamill.services.llm.store import Store

PICO: Final = 10**12
MESSAGE_OVERHEAD_TOKENS: Final = 16
REQUEST_OVERHEAD_TOKENS: Final = 32


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per million tokens."""

    usd_per_million_input: float = 0.0
    usd_per_million_output: float = 0.0

    def cost(self, tokens_in: int, tokens_out: int) -> int:
        """Pico-dollars of a request, rounded up."""
        per_token = PICO // 1_000_000
        return math.ceil(tokens_in * self.usd_per_million_input * per_token) + math.ceil(
            tokens_out * self.usd_per_million_output * per_token
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """Tokens and money set aside for one request."""

    id: str
    tokens_in: int
    tokens_out: int


def prompt_bound(messages: Sequence[Message], schema_chars: int = 0) -> int:
    """Upper bound of prompt tokens: bytes of the text plus what chat templates add."""
    text = sum(len(m.content.encode("utf-8", "replace")) + MESSAGE_OVERHEAD_TOKENS for m in messages)
    return text + schema_chars + REQUEST_OVERHEAD_TOKENS


class Budget:
    """Ledger of one run's spending. Limits of None do not bind."""

    def __init__(
        self, store: Store, prices: Prices, limit_usd: float | None = None, limit_tokens: int | None = None
    ) -> None:
        self._store = store
        self.prices = prices
        self._limits = {
            "pico_usd": None if limit_usd is None else math.floor(limit_usd * PICO + 0.5),
            "tokens": limit_tokens,
        }
        self._count = 0

    def reserve(self, tokens_in: int, tokens_out: int) -> Reservation | None:
        """Set aside an upper bound; None when it fits only after requests in flight have been settled.

        Raises:
            DatamillError: `DM-LLM-010`, exit code 7, when it cannot fit.
        """
        amounts = self._amounts(tokens_in, tokens_out)
        with self._store.update() as data:
            spent, held = data.setdefault("spent", {}), data.setdefault("held", {})
            _charge_dead(spent, held)
            for unit, limit in self._limits.items():
                if limit is None:
                    continue
                if spent.get(unit, 0) + amounts[unit] > limit:
                    raise _exceeded(unit, spent.get(unit, 0), amounts[unit], limit)
                if spent.get(unit, 0) + sum(entry[unit] for entry in held.values()) + amounts[unit] > limit:
                    return None
            self._count += 1
            name = f"{os.getpid()}-{id(self)}-{self._count}"
            held[name] = {**amounts, "pid": os.getpid()}
        return Reservation(name, tokens_in, tokens_out)

    def settle(self, reservation: Reservation, tokens_in: int, tokens_out: int) -> int:
        """Replace a reservation by what was used; returns its cost in pico-dollars."""
        amounts = self._amounts(tokens_in, tokens_out)
        with self._store.update() as data:
            data["held"].pop(reservation.id, None)
            _add(data["spent"], amounts)
        return amounts["pico_usd"]

    def spent(self) -> dict[str, float]:
        """`usd` and `tokens` settled so far."""
        with self._store.update() as data:
            spent = data.get("spent", {})
        return {"usd": spent.get("pico_usd", 0) / PICO, "tokens": spent.get("tokens", 0)}

    def _amounts(self, tokens_in: int, tokens_out: int) -> dict[str, int]:
        return {"pico_usd": self.prices.cost(tokens_in, tokens_out), "tokens": tokens_in + tokens_out}


def _add(spent: dict[str, int], amounts: dict[str, Any]) -> None:
    for unit in ("pico_usd", "tokens"):
        spent[unit] = spent.get(unit, 0) + amounts[unit]


def _charge_dead(spent: dict[str, int], held: dict[str, dict[str, Any]]) -> None:
    """What a killed worker had reserved may have been billed: count it as spent."""
    for name, entry in list(held.items()):
        if not Path(f"/proc/{entry['pid']}").exists():
            _add(spent, held.pop(name))


def _exceeded(unit: str, spent: int, needed: int, limit: int) -> DatamillError:
    def shown(amount: int) -> str:
        return f"${amount / PICO:.6f}" if unit == "pico_usd" else f"{amount} tokens"

    setting = "budget_usd" if unit == "pico_usd" else "budget_tokens"
    return DatamillError(
        "DM-LLM-010",
        f"the LLM budget of {shown(limit)} is used up: {shown(spent)} spent, the next request may need {shown(needed)}",
        exit_code=ExitCode.BUDGET_EXCEEDED,
        fix=f"answers so far are kept: raise {setting} and run the same command again",
        context={"unit": unit, "spent": spent, "needed": needed, "limit": limit},
    )
