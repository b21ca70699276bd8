r"""Algebraic equality by math-verify (sympy); meant to run inside `services.processes.KillableWorker`.

math-verify takes what it cannot read for something else and then calls unequal things equal, so its "equal" is held
against two tests of our own: both expressions must have the same numeric value, and the parser must have read the
whole text, which is shown by changing every number and every sign in turn and seeing the value change. Anything that
passes one test and fails another is undecided.

Source: Kydlíček 2025, Math-Verify. Cost: 5 to 100 ms a pair; importing takes a second.
"""

import logging
import re
from typing import Any, Final

from datamill.services.processes.killable import serve

RELATIVE_TOLERANCE: Final = 1e-12
_POINTS: Final = (1.3717421, 0.7390851, 2.2360679, 3.1622776, 1.7724538)
_NUMBER_OR_SIGN: Final = re.compile(r"\d+|[-+]")


def equal(gold: str, prediction: str) -> bool | None:
    """Whether two LaTeX or plain formulas have the same value; None when undecided."""
    from math_verify import verify

    left, right = _parse(gold), _parse(prediction)
    if not left or not right:
        return None
    verdict = bool(verify(left, right, timeout_seconds=None))
    a, b = _value(left), _value(right)
    if a is None or b is None:
        return None
    same = abs(a - b) <= RELATIVE_TOLERANCE * max(abs(a), abs(b))
    if same != verdict:
        return None
    if not (_reads_all(gold, a) and _reads_all(prediction, b)):
        return None
    return same


def _parse(text: str) -> list[Any]:
    from math_verify import LatexExtractionConfig, parse

    wrapped = f"${text}$"
    return list(parse(wrapped, [LatexExtractionConfig()], fallback_mode="no_fallback", parsing_timeout=None))


def _value(parsed: list[Any]) -> complex | None:
    """Numeric value at fixed points for the free symbols, None when there is none."""
    import sympy

    expression = parsed[0]
    if not isinstance(expression, sympy.Expr):
        return None
    symbols = sorted(expression.free_symbols, key=str)
    if len(symbols) > len(_POINTS):
        return None
    value = complex(expression.subs(dict(zip(symbols, _POINTS, strict=False))).evalf(30))
    return value if abs(value) < float("inf") else None


def _reads_all(text: str, value: complex) -> bool:
    """Whether changing any number or sign of `text` changes its value."""
    for match in _NUMBER_OR_SIGN.finditer(text):
        found = match.group()
        other = {"+": "-", "-": "+"}.get(found) or str(int(found) + 1)
        changed = _value(_parse(text[: match.start()] + other + text[match.end() :]) or [None])
        if changed is not None and abs(changed - value) <= RELATIVE_TOLERANCE * max(abs(changed), abs(value)):
            return False
    return True


def handle(payload: list[str]) -> bool | None:
    """Entry of the worker: `[gold, prediction]`."""
    gold, prediction = payload
    return equal(gold, prediction)


if __name__ == "__main__":
    # math-verify warns at every call that its own time limit is off; the limit is the killing of this process.
    logging.disable(logging.WARNING)
    import math_verify  # noqa: F401  loaded before the first call, so that its time is not counted

    serve(handle)
