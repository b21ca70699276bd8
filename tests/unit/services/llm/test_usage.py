"""Usage by node."""

from pathlib import Path

from datamill.services.llm.store import MemoryStore, open_store
from datamill.services.llm.usage import STORE_NAME, Usage, UsageLog, read_usage


def test_counters_add_up_by_node() -> None:
    log = UsageLog(MemoryStore())
    log.add("say", Usage(requests=1, calls=2, retries=1, tokens_in=10, tokens_out=5, pico_usd=7))
    log.add("plan", Usage(requests=1, cached=1))
    log.add("say", Usage(requests=1, calls=1, failed=1, rate_limited=1, tokens_in=3))
    assert log.by_node() == {
        "plan": Usage(requests=1, cached=1),
        "say": Usage(2, 3, 0, 1, 1, 1, 13, 5, 7),
    }
    assert list(log.by_node()) == ["plan", "say"]


def test_a_report_reads_what_workers_wrote(tmp_path: Path) -> None:
    assert read_usage(tmp_path) == {}
    assert list(tmp_path.iterdir()) == [], "reading creates nothing"
    for _ in range(2):
        UsageLog(open_store(tmp_path, STORE_NAME)).add("say", Usage(calls=1, pico_usd=500_000_000_000))
    usage = read_usage(tmp_path)["say"]
    assert usage.usd == 1.0
    assert usage.to_dict()["usd"] == 1.0
    assert usage.to_dict()["calls"] == 2
    assert "pico_usd" not in usage.to_dict()
