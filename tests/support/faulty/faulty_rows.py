"""Operators of another package that raise on one row: a batch step, and a step that looks at all rows."""

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from datamill.operators.declaration import Context, Effect, Need, Params, operator
from datamill.services.engines.protocol import Dataset, Outcome
from datamill.services.records import ID


class WordParams(Params):
    """Parameters of both."""

    word: str = "poison"


def _reads(_params: WordParams) -> Sequence[Need]:
    return [Need("text", dtypes=("string",))]


def refuse(rows: pa.Table, word: str) -> pa.Table:
    for text in rows["text"].to_pylist():
        if word in text:
            raise ZeroDivisionError(f"cannot digest {word}")
    return rows


@operator("faulty.batch", "Raise on rows with a word.", effect=Effect.MAP, params=WordParams, reads=_reads)
def batch(rows: pa.Table, params: WordParams, _ctx: Context) -> Outcome:
    return Outcome(refuse(rows, params.word))


@operator("faulty.whole", "Raise on rows with a word, late.", effect=Effect.GLOBAL, params=WordParams, reads=_reads)
def whole(datasets: Sequence[Dataset], params: WordParams, _ctx: Context) -> Dataset:
    return datasets[0].map_tables(partial(refuse, word=params.word), columns=[ID, "text"]).map_tables(none)


def none(rows: pa.Table) -> pa.Table:
    return rows.select([ID]).slice(0, 0)
