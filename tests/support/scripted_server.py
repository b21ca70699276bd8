"""A chat-completions server on a real 127.0.0.1 socket that answers from a script and remembers what it was asked.

A script is a function from `Seen` to `Step`; `in_order` and `by_text` make the usual ones. Use:

    with ScriptedServer(in_order([status(500), reply("hello")])) as server:
        client = ...(base_url=server.base_url)
    assert len(server.seen) == 2
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Seen:
    """One call: arrival (monotonic seconds), number from 0, path, parsed body and headers in lower case."""

    at: float
    number: int
    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def text(self) -> str:
        """Content of all messages."""
        return "\n".join(str(message["content"]) for message in self.body["messages"])


@dataclass(frozen=True)
class Step:
    """One answer: after `delay_s`, `status` with `payload`, or what `broken` says happens to the connection."""

    status: int = 200
    payload: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    broken: str | None = None  # `drop`: closed without an answer; `truncate`: half of the body; `garbage`: no JSON


Script = Callable[[Seen], Step]


def reply(
    text: str | Mapping[str, Any] | None,
    *,
    finish: str = "stop",
    usage: tuple[int, int] | None = (10, 5),
    refusal: str | None = None,
    delay_s: float = 0.0,
) -> Step:
    """A completion; a mapping is sent as JSON text. `usage` is (prompt, completion) tokens or None for no word on it."""
    content = json.dumps(text) if isinstance(text, Mapping) else text
    message = {"role": "assistant", "content": content, "refusal": refusal}
    payload: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if usage is not None:
        payload["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return Step(payload=payload, delay_s=delay_s)


def status(
    code: int, message: str = "scripted", *, retry_after: str | float | None = None, error_code: str | None = None
) -> Step:
    """An HTTP error in OpenAI's form."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Step(code, {"error": {"message": message, "type": "error", "code": error_code}}, headers)


def hang(seconds: float = 30.0) -> Step:
    """No answer for `seconds` (or until the server closes), then a completion nobody waits for."""
    return Step(**{**reply("too late").__dict__, "delay_s": seconds})


def drop() -> Step:
    """The connection closes without an answer."""
    return Step(broken="drop")


def truncate() -> Step:
    """Half of the announced body, then the connection closes."""
    return Step(payload=reply("a body that never ends").payload, broken="truncate")


def garbage() -> Step:
    """Status 200 with a body that is not JSON."""
    return Step(broken="garbage")


def in_order(steps: Sequence[Step], then: Step | None = None) -> Script:
    """Answer the n-th call with the n-th step, later ones with `then` (default: the last step)."""
    last = then or steps[-1]
    return lambda seen: steps[seen.number] if seen.number < len(steps) else last


def by_text(scripts: Mapping[str, Sequence[Step]], then: Step | None = None) -> Script:
    """Answer calls whose messages contain a key with the steps of that key, one after the other."""
    used = dict.fromkeys(scripts, 0)
    lock = threading.Lock()

    def script(seen: Seen) -> Step:
        key = max((key for key in scripts if key in seen.text), key=len, default=None)
        if key is None:
            return then or status(500, "the script has no such call")
        with lock:
            position, used[key] = used[key], used[key] + 1
        return scripts[key][position] if position < len(scripts[key]) else then or scripts[key][-1]

    return script


class ScriptedServer:
    """The server; a context manager. `seen` are the calls so far, `answered` pairs (monotonic seconds, status)."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.seen: list[Seen] = []
        self.answered: list[tuple[float, int]] = []
        self.max_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def base_url(self) -> str:
        """Address for a client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def record(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Step:
        """Remember a call and look up its answer."""
        with self._lock:
            seen = Seen(time.monotonic(), len(self.seen), path, body, headers)
            self.seen.append(seen)
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
        step = self.script(seen)
        if step.delay_s:
            self._closing.wait(step.delay_s)
        with self._lock:
            self._in_flight -= 1
            self.answered.append((time.monotonic(), step.status))
        return step


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is part of the script, not an error to print."""


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length))
            step = server.record(self.path, body, {k.lower(): v for k, v in self.headers.items()})
            if step.broken == "drop":
                self.close_connection = True
                return
            content = b"<html>no JSON here" if step.broken == "garbage" else json.dumps(step.payload).encode()
            self.send_response(step.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in step.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if step.broken == "truncate":
                content = content[: len(content) // 2]
                self.close_connection = True
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            """Quiet."""

    return Handler
