"""Carries `_id` of every row through LLaMA-Factory's loading, which keeps no column of ours and drops rows.

LLaMA-Factory converts rows one for one (`align_dataset`), merges and splits data sets, then tokenises in batches and
leaves out rows it cannot use. The id rides along as a column: added after the conversion, handed on by a tokeniser
that takes the rows of a batch one at a time, and removed before the trainer sees the rows. Positions and ids therefore
agree after any drop. Rows that carry no `_id` get one from the name of their set and their position in it. Packed rows
are several samples: they get ids of their own, made of their tokens.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import xxhash

from datamill.services.records import ID, row_id

_OWN_COLUMN: Final = ID


@dataclass(slots=True)
class IdBook:
    """Ids seen before tokenisation, to tell afterwards which rows were dropped."""

    loaded: list[str] = field(default_factory=list)

    def dropped(self, kept: list[str]) -> list[str]:
        """Loaded ids, with repeats, that are not among `kept`."""
        left = Counter(kept)
        missing = []
        for identity in self.loaded:
            if left[identity] > 0:
                left[identity] -= 1
            else:
                missing.append(identity)
        return missing


def with_ids(align: Callable[..., Any]) -> Callable[..., Any]:
    """LLaMA-Factory's `align_dataset`, whose result has an `_id` column."""

    def aligned(dataset: Any, dataset_attr: Any, data_args: Any, training_args: Any) -> Any:
        result = align(dataset, dataset_attr, data_args, training_args)
        if len(result) != len(dataset):  # the mapping between the two would be a guess
            raise AssertionError("align_dataset changed the number of rows")
        ids = [str(i) for i in dataset[ID]] if ID in dataset.column_names else own_ids(str(dataset_attr), len(result))
        return result.add_column(_OWN_COLUMN, ids)

    return aligned


def own_ids(dataset: str, rows: int) -> list[str]:
    """Ids of rows that carry none: by name of the set and position."""
    return [row_id(dataset, position) for position in range(rows)]


class TrackingProcessor:
    """A LLaMA-Factory dataset processor that hands `_id` on, one row at a time so that a drop cannot shift it."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def preprocess_dataset(self, examples: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        """As the inner processor, with the ids of the rows that were kept."""
        merged: dict[str, list[Any]] = defaultdict(list)
        columns = [column for column in examples if column != _OWN_COLUMN]
        for place, identity in enumerate(examples[_OWN_COLUMN]):
            single = self.inner.preprocess_dataset({column: [examples[column][place]] for column in columns})
            rows = len(single["input_ids"]) if "input_ids" in single else 0
            for column, values in single.items():
                merged[column].extend(values)
            merged[_OWN_COLUMN].extend([identity] * rows)
        return dict(merged)

    def print_data_example(self, example: dict[str, Any]) -> None:
        """LLaMA-Factory prints the first row."""
        self.inner.print_data_example(example)


def with_tracking(get_processor: Callable[..., Any]) -> Callable[..., Any]:
    """LLaMA-Factory's `_get_dataset_processor`; processors that pack rows are left as they are."""

    def tracked(data_args: Any, *args: Any, **kwargs: Any) -> Any:
        inner = get_processor(data_args, *args, **kwargs)
        return inner if data_args.packing else TrackingProcessor(inner)

    return tracked


def take_ids(dataset: Any) -> tuple[Any, list[str]]:
    """The dataset as stock LLaMA-Factory would give it, and the id of each of its rows."""
    if _OWN_COLUMN in dataset.column_names:
        return dataset.remove_columns(_OWN_COLUMN), [str(i) for i in dataset[_OWN_COLUMN]]
    return dataset, content_ids(dataset["input_ids"])


def content_ids(rows: Any) -> list[str]:
    """Ids from tokens; the second row with the same tokens gets another one."""
    seen: Counter[str] = Counter()
    ids = []
    for tokens in rows:
        digest = xxhash.xxh3_128_hexdigest(repr(list(tokens)).encode())
        ids.append(row_id(digest, seen[digest]))
        seen[digest] += 1
    return ids
