"""Carries out `format.preference` on a batch."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import orjson
import pyarrow as pa

from datamill.operators.format.preference import PreferenceParams, outputs, sources
from datamill.operators.outcomes import with_column
from datamill.services.engines.protocol import Outcome
from datamill.services.records import ID, MAX_CHILDREN, ORD, SRC, Fate, child_id, fates

Pair = tuple[str, str]


def preference_batch(batch: pa.Table, params: PreferenceParams) -> Outcome:
    """Make the pairs; the first keeps the id of its row, further ones are its children."""
    names = sources(params)
    columns = {name: batch[column].to_pylist() for name, column in names.items()}
    ids, orders, places = (batch[name].to_pylist() for name in (ID, ORD, SRC))
    parents: list[int] = []
    made: list[Pair] = []
    new_ids: list[str] = []
    new_orders: list[int] = []
    left: list[dict[str, Any]] = []
    for index, parent in enumerate(ids):
        pairs, problem = row_pairs(_row(columns, index), params)
        if problem:
            left.append({"id": parent, "fate": str(Fate.DROPPED), "reason": problem, "src": places[index]})
        for number, pair in enumerate(pairs):
            child = child_id(parent, number) if number else parent
            if number:
                left.append({"id": child, "fate": str(Fate.EXPANDED), "reason": "pair", "into": parent})
            parents.append(index)
            made.append(pair)
            new_ids.append(child)
            new_orders.append(_child_order(orders[index], number))
    rows = batch.take(pa.array(parents, pa.int64()))
    prompts = [str(columns["prompt"][index]) for index in parents]
    rows = rows if params.keep_source else rows.drop_columns(sorted(set(names.values())))
    values = (prompts, [pair[0] for pair in made], [pair[1] for pair in made])
    for name, texts in zip(outputs(params), values, strict=True):
        rows = with_column(rows, name, texts, pa.string())
    rows = rows.set_column(rows.column_names.index(ID), batch.schema.field(ID), pa.array(new_ids, pa.string()))
    rows = rows.set_column(rows.column_names.index(ORD), batch.schema.field(ORD), pa.array(new_orders, pa.int64()))
    return Outcome(rows, fates(left))


def row_pairs(row: Mapping[str, Any], params: PreferenceParams) -> tuple[list[Pair], str | None]:
    """Pairs of one row, or none and the reason.

    Args:
        row: `prompt`, `chosen`, `rejected`, `answers`, `scores`; absent ones are None.
        params: the rule.
    """
    if not _is_text(row["prompt"]):
        return [], "empty_prompt"
    if row["answers"] is None:
        return _explicit_pair(row["chosen"], row["rejected"])
    ranked = _ranked(row["answers"], row["scores"])
    if ranked is None:
        return [], "bad_answers"
    if len(ranked) < 2:
        return [], "one_sided"
    pairs = [
        (better[1], worse[1])
        for better, worse in _candidates(ranked, params)
        if better[0] > worse[0] and better[1].strip() != worse[1].strip()
    ]
    return (pairs[:MAX_CHILDREN], None) if pairs else ([], "tie")


def _explicit_pair(chosen: Any, rejected: Any) -> tuple[list[Pair], str | None]:
    if not (_is_text(chosen) and _is_text(rejected)):
        return [], "one_sided"
    return ([], "tie") if chosen.strip() == rejected.strip() else ([(chosen, rejected)], None)


def _candidates(
    ranked: list[tuple[float, str]], params: PreferenceParams
) -> list[tuple[tuple[float, str], tuple[float, str]]]:
    if params.rule == "best_vs_worst":
        return [(ranked[0], ranked[-1])]
    gap = params.min_gap if params.rule == "threshold" else 0.0
    return [(better, worse) for better, worse in combinations(ranked, 2) if better[0] - worse[0] >= gap]


def _ranked(answers: Any, scores: Any) -> list[tuple[float, str]] | None:
    """Answers with scores, best first; without scores the order of the list is the ranking."""
    texts, values = _list(answers), _list(scores)
    if texts is None or not all(_is_text(text) for text in texts):
        return None
    if values is None:
        values = [float(len(texts) - position) for position in range(len(texts))]
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        return None
    if len(numbers) != len(texts) or any(number != number for number in numbers):  # noqa: PLR0124  NaN
        return None
    order = sorted(range(len(texts)), key=lambda position: (-numbers[position], position))
    return [(numbers[position], texts[position]) for position in order]


def _list(value: Any) -> list[Any] | None:
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    return value if isinstance(value, list) else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _row(columns: Mapping[str, list[Any]], index: int) -> dict[str, Any]:
    fields = ("prompt", "chosen", "rejected", "answers", "scores")
    return {name: columns[name][index] if name in columns else None for name in fields}


def _child_order(order: int, number: int) -> int:
    """Children follow their parent while the child bits of `_ord` last; further ones are ordered by id."""
    return order + min(number, MAX_CHILDREN - 1 - order % MAX_CHILDREN)
