"""Carries out `pii.redact` on a batch: finds that do not overlap, replaced from left to right.

Text inside lists and structs (conversations) is redacted too. Cost: linear in the text; texts without a digit and
without `@` are passed over.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson
import pyarrow as pa

from datamill.operators.outcomes import keep_where, with_column
from datamill.operators.pii.patterns import PATTERNS, digits_of
from datamill.operators.pii.redact import RedactParams, counts_type
from datamill.services.engines.protocol import Outcome
from datamill.services.reading.columns import DTYPE_KEY

_WORTH_A_LOOK: Final = re.compile(r"[\d@]")
_ALPHANUMERIC: Final = re.compile(r"[^\W_]")
PSEUDONYM_HEX: Final = 10

Replace = Callable[[str, str], str]
"""(kind, found text) -> what stands there afterwards."""


def find(text: str, entities: Sequence[str]) -> list[tuple[int, int, str]]:
    """Finds of the given kinds as (start, end, kind), in order and without overlap."""
    taken: list[tuple[int, int, str]] = []
    if not _WORTH_A_LOOK.search(text):
        return taken
    for pattern in PATTERNS:
        if pattern.entity not in entities:
            continue
        for match in pattern.regex.finditer(text):
            start, end = pattern.span(match)
            if pattern.check(match) and all(end <= lo or start >= hi for lo, hi, _ in taken):
                taken.append((start, end, pattern.entity))
    return sorted(taken)


def redact_text(text: str, entities: Sequence[str], replace: Replace) -> tuple[str, Counter[str]]:
    """`text` with every find replaced, and the number of finds per kind."""
    parts, position, counts = [], 0, Counter[str]()
    for start, end, entity in find(text, entities):
        parts += [text[position:start], replace(entity, text[start:end])]
        position = end
        counts[entity] += 1
    return "".join([*parts, text[position:]]), counts


def redact_batch(batch: pa.Table, params: RedactParams, seed: int) -> Outcome:
    """Redact all columns; with `mode: drop` leave the texts alone and let the rows go."""
    replace = replacement(params, seed)
    totals = [Counter[str]() for _ in range(batch.num_rows)]
    for name in dict.fromkeys(params.columns):
        field = batch.schema.field(name)
        redact = _redact_json if (field.metadata or {}).get(DTYPE_KEY) == b"json" else _redact_value
        pairs = zip(batch[name].to_pylist(), totals, strict=True)
        values = [redact(value, params, replace, total) for value, total in pairs]
        if params.mode != "drop":
            index = batch.column_names.index(name)
            batch = batch.set_column(index, field, pa.array(values, field.type))
    counts = [{entity: total[entity] for entity in params.entities} for total in totals]
    counted = with_column(batch, params.counts_column, counts, counts_type(params))
    if params.mode != "drop":
        return Outcome(counted)
    sums = [total.total() for total in totals]
    detail = [", ".join(f"{name} {number}" for name, number in sorted(total.items())) for total in totals]
    return keep_where(
        counted, [not number for number in sums], reason="pii_found", value=sums, threshold=0, detail=detail
    )


def replacement(params: RedactParams, seed: int) -> Replace:
    """What a find is replaced with under `params.mode`."""
    if params.mode == "mask":
        return lambda entity, found: _ALPHANUMERIC.sub("*", found)
    if params.mode == "pseudonymise":
        key = hashlib.blake2b((params.key or f"seed {seed}").encode()).digest()
        return lambda entity, found: f"[{entity.upper()}_{_pseudonym(entity, found, key)}]"
    return lambda entity, found: f"[{entity.upper()}]"


def _pseudonym(entity: str, found: str, key: bytes) -> str:
    """Keyed hash of the value itself: spelling with or without separators gives the same."""
    value = found.lower() if entity in {"email", "ip", "cn_id"} else digits_of(found)
    hashed = hashlib.blake2b(f"{entity}\0{value}".encode(), key=key, digest_size=16)
    return hashed.hexdigest()[:PSEUDONYM_HEX]


def _redact_json(value: Any, params: RedactParams, replace: Replace, total: Counter[str]) -> Any:
    """Redact the strings inside JSON text; a number that is personal data becomes a string."""
    if value is None:
        return None
    return orjson.dumps(_redact_value(orjson.loads(value), params, replace, total, numbers=True)).decode()


def _redact_value(
    value: Any, params: RedactParams, replace: Replace, total: Counter[str], *, numbers: bool = False
) -> Any:
    if isinstance(value, str):
        text, counts = redact_text(value, params.entities, replace)
        total.update(counts)
        return text
    if isinstance(value, list):
        return [_redact_value(item, params, replace, total, numbers=numbers) for item in value]
    if isinstance(value, dict):
        return {key: _redact_value(item, params, replace, total, numbers=numbers) for key, item in value.items()}
    if numbers and isinstance(value, int) and not isinstance(value, bool):
        text, counts = redact_text(str(value), params.entities, replace)
        total.update(counts)
        return text if counts else value
    return value
