"""Case 53: some calls fail after all retries; the rows keep their input and never become None."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.scripted_server import ScriptedServer, Seen, Step, by_text, hang, reply, status

from datamill.errors import DatamillError, ExitCode
from datamill.operators.augment.paraphrase import ParaphraseParams, paraphrase
from datamill.operators.declaration import Context
from datamill.services.engines.protocol import Outcome
from datamill.services.records import ID, ORD, SRC, row_id, row_order
from datamill.workflows.ledger import balance_books

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "53-failed-calls-become-none"
pytestmark = pytest.mark.skipif(not CASE.is_dir(), reason="the shared cases are not here")


def table() -> pa.Table:
    rows = [json.loads(line) for line in (CASE / "in.jsonl").read_text().splitlines()]
    return pa.table(
        {
            ID: [row_id("in.jsonl", n) for n in range(len(rows))],
            ORD: [row_order(0, n) for n in range(len(rows))],
            SRC: [f"in.jsonl:{n + 1}" for n in range(len(rows))],
            "id": [row["id"] for row in rows],
            "text": [row["text"] for row in rows],
        }
    )


def scripted() -> ScriptedServer:
    script = json.loads((CASE / "script.json").read_text())
    steps = {f"sentence {number}": [as_step(word, number) for word in words] for number, words in script.items()}
    return ScriptedServer(by_text(steps))


def as_step(word: str, number: str) -> Step:
    if word == "ok":
        return reply({"text": f"the phrase called {number}"})
    return hang(5) if word == "timeout" else status(int(word), "scripted failure")


def run(server: ScriptedServer, **params: Any) -> Outcome:
    llm = {
        "base_url": server.base_url, "model": "m", "max_rpm": 100_000, "max_tpm": 10**9,
        "timeout_s": 1.0, "max_retries": 3, "backoff_s": 0.001,
    }  # fmt: skip
    context = Context("say", seed=7, settings={"llm": llm})
    return paraphrase(table(), ParaphraseParams(keep_original=False, **params), context)


def test_three_done_two_failed_with_the_last_error(caplog: pytest.LogCaptureFixture) -> None:
    with scripted() as server, caplog.at_level(logging.WARNING, "datamill.augment"):
        rows = run(server, max_failure_share=0.5).rows.to_pylist()
    done = [row for row in rows if row["paraphrase_status"] == "paraphrased"]
    failed = [row for row in rows if row["paraphrase_status"] == "failed"]
    assert [row["id"] for row in done] == [1, 3, 5]
    assert [row["text"] for row in done] == [f"the phrase called {n}" for n in (1, 3, 5)]
    assert [row["id"] for row in failed] == [2, 4]
    assert [row["text"] for row in failed] == ["sentence 2", "sentence 4"], "the input is kept"
    assert all(row["paraphrase_error"] == "llm_server_error: HTTP 500: scripted failure" for row in failed)
    assert all(row["text"] not in {None, "", "None"} for row in rows)
    assert re.search(r"2 of 5 calls failed \(llm_server_error 2\)", caplog.text), "it ends with a warning"


def test_the_books_balance_and_say_failed() -> None:
    with scripted() as server:
        outcome = run(server, max_failure_share=0.5)
    books = balance_books("say", table(), outcome.rows, outcome.fates)
    assert books.balance == 0
    assert books.noted == {"failed:llm_server_error": 2}
    assert books.gone == {}


def test_every_script_is_used_up_exactly() -> None:
    with scripted() as server:
        run(server, max_failure_share=0.5)
        asked = [match.group() for seen in server.seen if (match := re.search(r"sentence \d", text_of(seen)))]
    assert {text: asked.count(text) for text in set(asked)} == {
        "sentence 1": 1, "sentence 2": 4, "sentence 3": 2, "sentence 4": 4, "sentence 5": 1,
    }  # fmt: skip


def text_of(seen: Seen) -> str:
    return str(seen.body["messages"][-1]["content"])


def test_more_failures_than_allowed_stop_the_run() -> None:
    with scripted() as server, pytest.raises(DatamillError) as stop:
        run(server, max_failure_share=0.2)
    assert stop.value.code == "DM-LLM-020"
    assert stop.value.exit_code == ExitCode.STEP_FAILED == 1
    assert "2 of 5 calls failed" in str(stop.value)
    assert "HTTP 500: scripted failure" in str(stop.value)
    assert "run the same command again" in str(stop.value)
