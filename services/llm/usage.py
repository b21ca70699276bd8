"""Who asked how much: counters by node (a step or a node of the planner), summed over all workers of a run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from datamill.services.llm.budget import PICO
from datamill.services.llm.store import Store, open_store

STORE_NAME = "llm_usage"


@dataclass(frozen=True, slots=True)
class Usage:
    """Counters of one node.

    Attributes:
        requests: requests that came to an end, answered or failed.
        calls: HTTP requests sent.
        cached: requests answered from the cache.
        failed: requests without an accepted reply.
        retries: calls after the first of a request, rate limits left out.
        rate_limited: calls answered with 429.
        tokens_in: prompt tokens.
        tokens_out: completion tokens.
        pico_usd: cost in 1e-12 dollars.
    """

    requests: int = 0
    calls: int = 0
    cached: int = 0
    failed: int = 0
    retries: int = 0
    rate_limited: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    pico_usd: int = 0

    @property
    def usd(self) -> float:
        """Cost in dollars."""
        return self.pico_usd / PICO

    def to_dict(self) -> dict[str, float]:
        """JSON-ready counters with `usd` instead of pico-dollars."""
        return {k: v for k, v in asdict(self).items() if k != "pico_usd"} | {"usd": self.usd}


class UsageLog:
    """Adds up usage in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, node: str, usage: Usage) -> None:
        """Add to the counters of `node`."""
        with self._store.update() as data:
            counters = data.setdefault(node, {})
            for name, value in asdict(usage).items():
                counters[name] = counters.get(name, 0) + value

    def by_node(self) -> dict[str, Usage]:
        """Counters of every node, sorted by name."""
        names = {f.name for f in fields(Usage)}
        with self._store.update() as data:
            return {node: Usage(**{k: v for k, v in data[node].items() if k in names}) for node in sorted(data)}


def read_usage(state_dir: Path) -> Mapping[str, Usage]:
    """Usage of a run by node, for its report; empty when no LLM was asked."""
    if not (state_dir / f"{STORE_NAME}.json").is_file():
        return {}
    return UsageLog(open_store(state_dir, STORE_NAME)).by_node()
