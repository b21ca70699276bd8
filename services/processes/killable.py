"""A worker process for calls that may hang in C code: it is reused until a call overruns, then killed and replaced.

The worker runs `python -m <module>` and answers JSON lines (see `serve`). Nothing inside the interpreter can stop a
runaway big-integer power, so the limit is enforced from outside; should the parent die first, an alarm with the
default action ends the worker by itself. Cost: starting takes as long as importing the module, a call about 50 µs
besides its work.
"""

import atexit
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from math import ceil
from types import TracebackType
from typing import IO, Any, Final

START_TIMEOUT_S: Final = 120.0
MEMORY_BYTES: Final = 4 << 30


class CallTimeout(Exception):  # noqa: N818  names the event
    """A call did not answer in time; its worker is gone."""


class CallFailed(Exception):  # noqa: N818  names the event
    """The worker died or answered that it failed."""


class KillableWorker:
    """Calls `module`'s handler in a process of its own; not for use by several threads at once.

    Args:
        module: a module that calls `serve` when run as a script.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._buffer = b""
        atexit.register(self.close)

    def __enter__(self) -> "KillableWorker":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def call(self, payload: Any, timeout_s: float) -> Any:
        """Send `payload` (JSON-ready) and wait for the answer.

        Raises:
            CallTimeout: after `timeout_s` seconds without an answer.
            CallFailed: when the handler raised or the worker died.
        """
        process = self._running()
        line = json.dumps({"timeout_s": timeout_s, "payload": payload}).encode() + b"\n"
        try:
            _stream(process.stdin).write(line)
            _stream(process.stdin).flush()
        except OSError as error:
            self.close()
            raise CallFailed(str(error)) from error
        answer = json.loads(self._read_line(process, timeout_s))
        if "error" in answer:
            raise CallFailed(answer["error"])
        return answer["result"]

    def close(self) -> None:
        """Kill the worker if there is one."""
        process, self._process, self._buffer = self._process, None, b""
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            try:
                _stream(stream).close()
            except BrokenPipeError:  # unsent bytes of a worker that is dead anyway
                continue

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._owner != os.getpid():  # after a fork the worker belongs to the parent
            self._process, self._owner, self._buffer = None, os.getpid(), b""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self.starts += 1
            command = [sys.executable, "-m", self.module]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  own module
            self._read_line(self._process, START_TIMEOUT_S)
        return self._process

    def _read_line(self, process: "subprocess.Popen[bytes]", timeout_s: float) -> bytes:
        output = _stream(process.stdout)
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.close()
                    raise CallTimeout(f"no answer within {timeout_s:g} s")
                chunk = os.read(output.fileno(), 1 << 16)
                if not chunk:
                    self.close()
                    raise CallFailed("the worker died")
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


def serve(handler: Callable[[Any], Any]) -> None:
    """Answer calls on standard input until it ends; what the handler prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    _answer(answers, {"ready": True})
    for line in sys.stdin.buffer:
        call = json.loads(line)
        signal.alarm(ceil(call["timeout_s"]) + 1)
        try:
            answer = {"result": handler(call["payload"])}
        except Exception as error:  # noqa: BLE001  the handler's failure is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        signal.alarm(0)
        _answer(answers, answer)


def _answer(stream: IO[bytes], value: dict[str, Any]) -> None:
    stream.write(json.dumps(value).encode() + b"\n")
    stream.flush()


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None, "the worker is started with pipes"
    return stream
