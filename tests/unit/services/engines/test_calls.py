"""Results and errors of workers arrive as they were: once, whole, and without what a cluster says about them."""

import pickle
import threading
from typing import Any

import pytest

from datamill.errors import DatamillError, ExitCode
from datamill.services.engines.calls import CarriedError, Reply, UnitCall, call_unit, carried, carrying


def half(item: int) -> float:
    if item == 0:
        raise DatamillError(
            "DM-TEST-001", "nothing to halve", exit_code=ExitCode.INVALID, step="s", line=7, fix="give 1"
        )
    return item / 2


class TwoWordsError(Exception):
    """Cannot be pickled: its arguments do not fit its constructor."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


def test_a_result_and_an_error_are_replies() -> None:
    assert Reply.of(call_unit(half, pickle.dumps(9))).value() == 4.5
    reply = Reply.of(memoryview(call_unit(half, pickle.dumps(0))))
    with pytest.raises(DatamillError, match="nothing to halve") as caught:
        reply.value()
    issue = caught.value.issues[0]
    assert (caught.value.exit_code, issue.step, issue.line, issue.fix) == (ExitCode.INVALID, "s", 7, "give 1")


def test_a_none_is_a_result() -> None:
    assert Reply.of(call_unit(pickle.loads, pickle.dumps(pickle.dumps(None)))).value() is None


def test_a_numbered_item_keeps_its_number() -> None:
    ((number, reply),) = UnitCall(half)((5, pickle.dumps(3)))
    assert (number, Reply.of(reply).value()) == (5, 1.5)


@pytest.mark.parametrize("error", [TwoWordsError("a", "b"), ValueError(threading.Lock())])
def test_what_cannot_travel_leaves_its_words(error: Exception) -> None:
    def fail(_item: Any) -> None:
        raise error

    told = Reply.of(call_unit(fail, pickle.dumps(1))).error
    assert isinstance(told, DatamillError)
    assert told.code == "DM-RUN-001"
    assert str(error)[:20] in str(told)
    assert type(error).__name__ in str(told)


def quoted(error: Exception) -> str:
    """The error as a cluster shows it: among the traces of its own workers."""
    with pytest.raises(CarriedError) as caught, carrying():
        raise error
    return f"Job aborted:\n  File worker.py\n    raise {caught.value}\nCaused by: java.lang.Exception ({caught.value})"


def test_an_error_is_found_in_whatever_is_wrapped_around_it() -> None:
    found = carried(quoted(DatamillError("DM-TEST-002", "row 7 is broken", step="clean")))
    assert isinstance(found, DatamillError)
    assert (found.code, found.issues[0].step) == ("DM-TEST-002", "clean")
    noted = ValueError("digits")
    noted.add_note("shard 3 from row ab on")
    again = carried(quoted(noted))
    assert isinstance(again, ValueError)
    assert again.__notes__ == ["shard 3 from row ab on"]


def test_a_full_disk_is_still_a_full_disk() -> None:
    found = carried(quoted(OSError(28, "No space left on device", "/full")))
    assert isinstance(found, OSError)
    assert (found.errno, found.filename) == (28, "/full")


def test_an_error_that_is_on_its_way_is_not_wrapped_again() -> None:
    with pytest.raises(CarriedError) as inner, carrying():
        raise ValueError("once")
    with pytest.raises(CarriedError) as outer, carrying():
        raise inner.value
    assert outer.value is inner.value
    with carrying():
        fine = 1
    assert fine == 1


def test_words_of_a_cluster_alone_carry_nothing() -> None:
    assert carried("Lost executor 3: worker died") is None
    assert carried("datamill-error:") is None
