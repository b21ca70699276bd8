"""A selection may not aim at what it trains on, nor at a test set.

Both are decided by content: texts are compared after folding case, punctuation and spacing, and test sets are known by
fingerprints of their n-grams, so a renamed or reformatted copy is found. Cost: one pass over the texts.
"""

from pathlib import Path
from typing import Final

from datamill.errors import DatamillError, ExitCode
from datamill.services.benchmarks import match_texts
from datamill.training.config import TrainConfig
from datamill.training.datasets import RowText, dataset_folder, names_of, normalised, row_texts

MAX_BENCHMARK_SHARE: Final = 0.2
"""A target set of which more is found in one test set is that test set, whatever its name."""

MIN_BENCHMARK_ROWS: Final = 3
"""Fewer matching rows than this may be chance."""


def check_targets(config: TrainConfig, project: Path | None = None) -> list[str]:
    """Refuse a target set that meets the training set or a test set.

    Args:
        config: of the run.
        project: folder with the project's own registered benchmarks.

    Returns:
        Sentences about sets that could not be looked at.

    Raises:
        DatamillError: `DM-TRAIN-007` for rows in both, `DM-TRAIN-008` for a test set.
    """
    section = config.section
    if section is None or section.train_type != "dynamic_select":
        return []
    folder = dataset_folder(config)
    targets = section.targets or tuple(names_of(config.llamafactory.get("eval_dataset")))
    training = {name: row_texts(folder, name) for name in names_of(config.llamafactory.get("dataset"))}
    notes = [
        f"`{name}` is not a local file: overlap with the target was not checked"
        for name, rows in training.items()
        if rows is None
    ]
    for target in targets:
        rows = row_texts(folder, target)
        if rows is None:
            notes.append(f"target `{target}` is not a local file: it was not checked")
            continue
        check_not_benchmark(target, rows, project)
        for name, texts in training.items():
            if texts is not None:
                check_disjoint(target, rows, name, texts)
    return notes


def check_disjoint(target: str, target_rows: list[RowText], training: str, training_rows: list[RowText]) -> None:
    """Refuse rows whose question, or whole text where there is none, is in both sets."""
    known = {_key(row) for row in training_rows}
    shared = [row for row in target_rows if _key(row) in known]
    if shared:
        raise DatamillError(
            "DM-TRAIN-007",
            f"{len(shared)} of {len(target_rows)} rows of target `{target}` are in training set `{training}`, "
            f"e.g. {shared[0].prompt[:80]!r}",
            exit_code=ExitCode.INVALID,
            field="target_dataset",
            fix="split before training (operator `split`), or leave these rows out of one of the two sets",
        )


def check_not_benchmark(target: str, rows: list[RowText], project: Path | None = None) -> None:
    """Refuse a set of which a notable share is found in a registered test set."""
    if not rows:
        raise DatamillError(
            "DM-TRAIN-007", f"target `{target}` has no rows", exit_code=ExitCode.INVALID, field="target_dataset"
        )
    shares = match_texts([row.prompt or row.full for row in rows], project)
    worst = max(shares, key=lambda name: shares[name], default=None)
    if worst is None or shares[worst] <= MAX_BENCHMARK_SHARE or shares[worst] * len(rows) < MIN_BENCHMARK_ROWS:
        return
    raise DatamillError(
        "DM-TRAIN-008",
        f"target `{target}` is the test set {worst}: {shares[worst]:.0%} of its rows are found there",
        exit_code=ExitCode.INVALID,
        field="target_dataset",
        expected="rows of a training or validation split",
        fix="aim at other rows; selecting by a test set makes its score meaningless",
    )


def _key(row: RowText) -> str:
    return normalised(row.prompt) or normalised(row.full)
