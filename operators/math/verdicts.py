"""Carries out `math.verify` on a batch: self-check of solutions, exact comparison, then algebra in a worker."""

import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from datamill.operators.math.answers import Answer, compare, parse_answer
from datamill.operators.math.extraction import extract_answer
from datamill.operators.math.solutions import check_solution
from datamill.operators.math.verify import VerifyParams
from datamill.operators.outcomes import keep_where, with_column
from datamill.services.engines.protocol import Outcome
from datamill.services.processes.killable import CallFailed, CallTimeout, KillableWorker

WORKER_MODULE: Final = "datamill.operators.math.symbolic"
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of one row; `reason` and `detail` say why it is not `true`."""

    outcome: str
    reason: str | None = None
    detail: str | None = None


def judge_batch(batch: pa.Table, params: VerifyParams) -> Outcome:
    """Fill the outcome column and let rows go by `on_wrong` and `on_unknown`."""
    predictions = batch[params.prediction].to_pylist()
    golds = batch[params.gold].to_pylist() if params.gold else [None] * len(predictions)
    verdicts = [judge(prediction, gold, params) for prediction, gold in zip(predictions, golds, strict=True)]
    outcomes = [verdict.outcome for verdict in verdicts]
    tagged = with_column(batch, params.outcome_column, outcomes, pa.string())
    leaving = {"false"} if params.on_wrong == "drop" else set()
    leaving |= {"unknown"} if params.on_unknown == "drop" else set()
    reasons = [verdict.reason for verdict in verdicts]
    details = [verdict.detail for verdict in verdicts]
    return keep_where(tagged, [outcome not in leaving for outcome in outcomes], reason=reasons, detail=details)


def judge(prediction: Any, gold: Any, params: VerifyParams) -> Verdict:
    """Verdict on one prediction."""
    if prediction is None:
        return Verdict("unknown", "unknown_answer", "no prediction")
    text = str(prediction)
    checked = 0
    if params.annotations:
        finding = check_solution(text)
        if finding.reason:
            return Verdict("false", finding.reason, finding.detail)
        checked = finding.checked
    if gold is None:
        return Verdict("true") if checked else Verdict("unknown", "unknown_answer", "nothing to check against")
    return _against_gold(text, str(gold), params)


def _against_gold(text: str, gold: str, params: VerifyParams) -> Verdict:
    right = extract_answer(gold, "auto" if params.extract == "auto" else "whole")
    given = extract_answer(text, params.extract)
    if right is None or given is None:
        return Verdict("unknown", "unknown_answer", "no answer found in the text")
    equal = answers_equal(right, given, params)
    if equal is None:
        return Verdict("unknown", "unknown_answer", f"cannot compare {given[:200]} with {right[:200]}")
    return Verdict("true") if equal else Verdict("false", "wrong_answer", f"{given[:200]}, gold {right[:200]}")


def answers_equal(gold: str, prediction: str, params: VerifyParams) -> bool | None:
    """Whether two answers are equal; None when undecided."""
    left, right = parse_answer(gold), parse_answer(prediction)
    decided = compare(left, right)
    if decided is None and left.kind == right.kind == "ordered" and len(left.items) == len(right.items):
        pairs = zip(left.items, right.items, strict=True)
        return _together([_item_equal(a, b, params) for a, b in pairs])
    return _item_equal(left, right, params) if decided is None else decided


def _item_equal(left: Answer, right: Answer, params: VerifyParams) -> bool | None:
    decided = compare(left, right)
    if decided is not None or not params.symbolic or not {left.kind, right.kind} <= {"number", "formula"}:
        return decided
    if left.kind == right.kind == "number":
        return None
    return _symbolic(left.text, right.text, params.timeout_s)


def _symbolic(gold: str, prediction: str, timeout_s: float) -> bool | None:
    try:
        answer = worker().call([gold, prediction], timeout_s)
    except (CallTimeout, CallFailed) as error:
        _LOG.debug("symbolic comparison of %r with %r given up: %s", prediction, gold, error)
        return None
    return answer if isinstance(answer, bool) else None


@lru_cache(maxsize=1)
def worker() -> KillableWorker:
    """The worker of this process."""
    return KillableWorker(WORKER_MODULE)


def _together(verdicts: list[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True
