"""Progress of a run on stderr: a line a finished step; a moving line on a terminal, off it one line per 5 s at most."""

import sys
import time
from collections.abc import Mapping
from typing import Any

from datamill.cli.preview import duration
from datamill.cli.session import Session

QUIET_SECONDS = 5.0


class ProgressLines:
    """A listener for run events."""

    def __init__(self, session: Session, json_stream: bool = False) -> None:
        self.session = session
        self.json_stream = json_stream
        self.live = session.color and not session.quiet
        self.last = 0.0
        self.rows: dict[str, int] = {}
        self.width = 0

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Show one event."""
        if self.json_stream:
            import orjson

            sys.stdout.write(orjson.dumps(event, default=str).decode() + "\n")
            sys.stdout.flush()
        handler = getattr(self, f"_{event['event']}", None)
        if handler is not None:
            handler(event)

    def _run_started(self, event: Mapping[str, Any]) -> None:
        word = "RESUME" if event["resumed"] else "RUN"
        self.session.say(f"{word}  {event['run']}")

    def _engine_ready(self, event: Mapping[str, Any]) -> None:
        if event["executor"] != "local":
            pages = "".join(f"   {name} {url}" for name, url in event["links"].items())
            took = duration(event["seconds"])
            self.session.say(f"  {event['executor']} with {event['workers']} workers, ready in {took}{pages}")

    def _run_waiting(self, event: Mapping[str, Any]) -> None:
        self.session.say(f"waiting: process {event['owner']} is running this plan (Ctrl-C leaves it to it)")

    def _unit_done(self, event: Mapping[str, Any]) -> None:
        step = event["step"]
        self.rows[step] = self.rows.get(step, 0) + event["rows"]
        now = time.monotonic()
        if not self.live and now - self.last < QUIET_SECONDS:
            return
        text = f"  {step:<12} shard {event['shard'] + 1}/{event['of']}  {self.rows[step]:,} rows"
        if self.live:
            sys.stderr.write("\r" + text.ljust(self.width))
            sys.stderr.flush()
            self.width = len(text)
        elif self.last:
            self.session.say(text)
        self.last = now

    def _clear(self) -> None:
        """Wipe the moving line."""
        if self.live and self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            self.width = 0

    def _step_done(self, event: Mapping[str, Any]) -> None:
        self._clear()
        books = event["books"]
        gone = {k.removeprefix("reason."): v for k, v in books.items() if k.startswith("reason.")}
        total = sum(gone.values())
        why = ", ".join(f"{name.split(':', 1)[1]} {count:,}" for name, count in sorted(gone.items(), key=_largest)[:3])
        lost = f"   {total:,} left ({why})" if total else ""
        more = f"   {books['expanded']:,} added" if books["expanded"] else ""
        reused = "  reused" if event["shards"] and event["reused"] == event["shards"] else ""
        seconds = duration(event["seconds"])
        self.session.say(f"  {event['step']:<12} {books['out']:>9,} rows{more}{lost}  {seconds}{reused}")

    def _step_failed(self, event: Mapping[str, Any]) -> None:
        self._clear()
        self.session.say(f"  {event['step']:<12} failed  {event['code']} {event['message']}")

    def _step_skipped(self, event: Mapping[str, Any]) -> None:
        self.session.say(f"  {event['step']:<12} not run: needs {', '.join(event['needs'])}")

    def _output_written(self, event: Mapping[str, Any]) -> None:
        state = "  unchanged" if event["reused"] else ""
        self.session.say(f"  -> {event['path']}  {event['rows']:,} rows{state}")

    def _train_plan(self, event: Mapping[str, Any]) -> None:
        facts = [f"steps {event.get('step')}-{event.get('until')}", str(event.get("kind", ""))]
        if event.get("candidates"):
            facts.append(f"chose {event.get('chosen'):,} of {event['candidates']:,} scored")
        if event.get("overlap") is not None:
            facts.append(f"overlap with the plan before {event['overlap']:.0%}")
        self.session.say(f"  plan {event.get('plan')}: {', '.join(facts)}")

    def _train_log(self, event: Mapping[str, Any]) -> None:
        loss = event.get("loss")
        if loss is not None:
            self.session.say(f"  step {event['step']}/{event.get('steps', '?')}  loss {loss:.4g}")

    def _train_note(self, event: Mapping[str, Any]) -> None:
        self.session.say(f"  ? {event.get('text') or event.get('message')}")

    def _stopping(self, event: Mapping[str, Any]) -> None:
        self.session.say(str(event["message"]))


def _largest(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]
