"""The dry run: what a training run will do and need, worked out without starting anything.

Rows are counted in the files; tokens are estimated from the text (one token for four bytes of UTF-8, at most
`cutoff_len` a row), which is within a factor of two for byte-level vocabularies; memory is exact. Cost: one pass over
the files.
"""

from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from datamill.training.config import TrainConfig
from datamill.training.datasets import RowText, dataset_folder, names_of, row_texts
from datamill.training.schedule import selections, step_rule, total_steps

BYTES_PER_TOKEN: Final = 4
FLOAT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Explanation:
    """Numbers of a dry run; None where they follow from data that is not on this machine.

    Attributes:
        method: of the run.
        rule: which rule fixes the steps.
        rows: of the training set, as filed.
        target_rows: of the target sets.
        steps: optimizer steps.
        warmup_steps: of them in natural order.
        rounds: selections.
        scored_rows: candidates of a round.
        trained_tokens: through the model to train, padding aside.
        scored_tokens: through the model to score, targets included.
        feature_bytes: of one round's projected features if they were kept, proj_dim times rows; they are not kept.
        notes: sentences worth telling.
    """

    method: str
    rule: str
    rows: int | None
    target_rows: int | None
    steps: int | None
    warmup_steps: int
    rounds: int | None
    scored_rows: int | None
    trained_tokens: int | None
    scored_tokens: int | None
    feature_bytes: int | None
    notes: tuple[str, ...] = field(default=())

    def lines(self) -> list[str]:
        """For a terminal."""
        shown = ["?" if value is None else f"{value:,}" for value in (self.rows, self.steps, self.rounds)]
        text = [f"TRAIN {self.method}  {shown[0]} rows, {shown[1]} steps ({self.rule})"]
        if self.rounds:
            window = f"{self.scored_rows:,} rows" if self.scored_rows is not None else "? rows"
            size = f" (proj_dim x rows: {self.feature_bytes / 2**20:.0f} MiB)" if self.feature_bytes else ""
            text.append(f"  warm-up {self.warmup_steps} steps, then {shown[2]} rounds, each scoring {window}{size}")
        if self.trained_tokens is not None:
            scored = f" + {self.scored_tokens:,} to score" if self.scored_tokens else ""
            text.append(f"  about {self.trained_tokens:,} tokens to train{scored}")
        return [*text, *(f"  {note}" for note in self.notes), "  nothing was started (dry run)"]


def explain(config: TrainConfig, nproc: int = 1) -> Explanation:
    """Work out a dry run.

    Raises:
        DatamillError: `DM-TRAIN-014` when a data set is not registered.
    """
    training = _texts(config, names_of(config.llamafactory.get("dataset")))
    section = config.section
    selects = section is not None and section.train_type == "dynamic_select"
    wanted = (section.targets if section else ()) or tuple(names_of(config.llamafactory.get("eval_dataset")))
    targets = _texts(config, list(wanted)) if selects else None
    rows = _limited(config, training)
    steps = step_rule(section, config.llamafactory).total
    if steps is None and rows:
        steps = total_steps(section, config.llamafactory, rows, nproc)
    rounds = selections(section, steps) if section is not None and steps is not None else 0
    scored = None
    if selects and section is not None and rows is not None:
        scored = min(section.candidate_window or rows, rows)
    mean = _tokens(config, training)
    per_step = _rows_of_a_step(config, nproc)
    trained = None if mean is None or steps is None else round(mean * steps * per_step)
    return Explanation(
        method=str(section.component_name or section.train_type) if section else "llamafactory",
        rule=step_rule(section, config.llamafactory).rule,
        rows=rows,
        target_rows=None if targets is None else len(targets),
        steps=steps,
        warmup_steps=section.warmup_step if selects and section is not None else 0,
        rounds=rounds,
        scored_rows=scored,
        trained_tokens=trained,
        scored_tokens=_scored_tokens(config, rounds, scored, mean, targets),
        feature_bytes=_feature_bytes(config, scored),
        notes=(*config.notes, *_window_note(config, scored, rows)),
    )


def _texts(config: TrainConfig, names: list[str]) -> list[RowText] | None:
    found = [row_texts(dataset_folder(config), name) for name in names]
    if not found or any(rows is None for rows in found):
        return None
    return [row for rows in found if rows is not None for row in rows]


def _limited(config: TrainConfig, rows: list[RowText] | None) -> int | None:
    if rows is None:
        return None
    limit = config.llamafactory.get("max_samples")
    return len(rows) if limit is None else min(len(rows), int(limit))


def _tokens(config: TrainConfig, rows: list[RowText] | None) -> float | None:
    """Mean tokens of a row."""
    if not rows:
        return None
    limit = int(config.llamafactory.get("cutoff_len") or 2048)
    return fmean(min(len(row.full.encode("utf-8", "replace")) / BYTES_PER_TOKEN, limit) for row in rows)


def _rows_of_a_step(config: TrainConfig, nproc: int) -> int:
    batch = int(config.llamafactory.get("per_device_train_batch_size") or 8)
    return batch * int(config.llamafactory.get("gradient_accumulation_steps") or 1) * nproc


def _scored_tokens(
    config: TrainConfig, rounds: int, scored: int | None, mean: float | None, targets: list[RowText] | None
) -> int | None:
    if not rounds or scored is None or mean is None or config.section is None:
        return 0 if not rounds else None
    if config.section.component_name == "random":
        return 0
    aimed = (_tokens(config, targets) or 0.0) * len(targets or ())
    return round(rounds * (scored * mean + aimed))


def _feature_bytes(config: TrainConfig, scored: int | None) -> int | None:
    if config.section is None or scored is None or config.section.component_name != "less":
        return None
    from datamill.training.registry import check_params, find_selector

    params = check_params(find_selector("less").params, config.section.component_params, "less")
    return int(getattr(params, "proj_dim", 0)) * scored * FLOAT_BYTES


def _window_note(config: TrainConfig, scored: int | None, rows: int | None) -> list[str]:
    if config.section is None or scored is None or rows is None or scored >= rows:
        return []
    return [f"candidate window: {scored:,} of {rows:,} rows a round, drawn by seed; candidate_window=null for all"]
