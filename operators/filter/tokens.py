"""Token counts by a local `tokenizer.json` (Hugging Face format)."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from datamill.errors import DatamillError, ExitCode

BATCH = 1000


@lru_cache(maxsize=4)
def load_tokenizer(path: str) -> Any:
    """The tokenizer in `path`, a file or a folder holding `tokenizer.json`; truncation and padding are switched off.

    Raises:
        DatamillError: `DM-OPA-030` when there is none or it cannot be read.
    """
    from tokenizers import Tokenizer

    target = Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)
    try:
        tokenizer = Tokenizer.from_file(str(target))
    except Exception as error:  # the Rust binding raises bare Exception
        raise DatamillError(
            "DM-OPA-030",
            f"`{target}` cannot be read as a tokenizer: {error}",
            exit_code=ExitCode.INVALID,
            field="params.tokenizer",
            expected="a tokenizer.json of the Hugging Face format, or a folder with one",
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def token_counts(text: pl.Series, path: str) -> pl.Series:
    """Tokens of every text without special tokens, int64; null stays null."""
    tokenizer = load_tokenizer(path)
    counts: list[int | None] = []
    for start in range(0, len(text), BATCH):
        values = text.slice(start, BATCH).to_list()
        encoded = tokenizer.encode_batch_fast([value or "" for value in values], add_special_tokens=False)
        counts += [None if value is None else len(item) for value, item in zip(values, encoded, strict=True)]
    return pl.Series(counts, dtype=pl.Int64)
