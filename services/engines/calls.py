"""A unit of work called on a worker: its result or its error, as bytes that travel.

An error of a unit is a reply like any other; an error inside a frame travels as a `CarriedError`, whose words are the
pickled original. So a driver names the step and the row once instead of showing what a cluster makes of an
exception; only the loss of a worker is left to the cluster, which runs the task again.
"""

import base64
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from datamill.errors import DatamillError


@dataclass(frozen=True)
class Reply:
    """What a call came to.

    Attributes:
        result: what the task returned.
        error: what it raised, if it did.
    """

    result: Any = None
    error: Exception | None = None

    @classmethod
    def of(cls, data: bytes | memoryview) -> "Reply":
        """A reply from its bytes."""
        reply: Reply = pickle.loads(data)  # noqa: S301  written by this run's own worker
        return reply

    def value(self) -> Any:
        """The result, or the error raised here."""
        if self.error is not None:
            raise self.error
        return self.result


def call_unit(task: Callable[[Any], Any], item: bytes | memoryview) -> bytes:
    """Call `task` with a pickled item; the pickled `Reply`."""
    try:
        reply = Reply(task(pickle.loads(item)))  # noqa: S301  written by this run's driver
    except Exception as error:  # noqa: BLE001  it is raised again on the driver
        reply = Reply(error=_portable(error))
    return pickle.dumps(reply)


class UnitCall:
    """A task over pickled items as a function of numbered payloads."""

    def __init__(self, task: Callable[[Any], Any]) -> None:
        self.task = task

    def __call__(self, numbered: tuple[int, bytes]) -> Iterator[tuple[int, bytes]]:
        """`(index, reply)`."""
        yield numbered[0], call_unit(self.task, numbered[1])


def _portable(error: Exception) -> Exception:
    """`error` if it survives the journey, else its words."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:  # noqa: BLE001  whatever pickling raises, the words still travel
        return DatamillError("DM-RUN-001", f"{type(error).__name__}: {str(error)[:300]}")
    return error


class CarriedError(Exception):
    """An error on its way from a worker to the driver, as text that survives being quoted."""


_CARRIED: Final = re.compile(r"datamill-error:([A-Za-z0-9+/=]+):")


@contextmanager
def carrying() -> Iterator[None]:
    """On a worker: send whatever is raised as a `CarriedError`."""
    try:
        yield
    except CarriedError:
        raise
    except Exception as error:  # noqa: BLE001  it is raised again on the driver
        data = base64.b64encode(pickle.dumps(_portable(error))).decode()
        raise CarriedError(f"datamill-error:{data}:") from None


def carried(text: str) -> Exception | None:
    """On the driver: the original error quoted somewhere in `text`, or None."""
    found = _CARRIED.search(text)
    if found is None:
        return None
    error: Exception = pickle.loads(base64.b64decode(found.group(1)))  # noqa: S301  sent by this run's own worker
    return error
