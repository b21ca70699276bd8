"""The `train:` block of a draft, or the training method named as missing with everything said about it."""

import math
import re
from typing import Any

from datamill.agents.draft import MissingCapability
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.training_words import PARADIGMS, TrainingWish
from datamill.training.registry import selectors

BATCH, ACCUMULATION = 2, 4
"""Micro-batch and accumulation of a draft when the request gives none."""

NO_MODEL = "no model named: smollm2 (SmolLM2-135M-Instruct)"
"""Said when neither the request nor `--train-model` names a model."""

_SAID_KEYS = (("steps", "max_steps"), ("seed", "seed"), ("warmup_ratio", "warmup_ratio"))
"""Settings that LLaMA-Factory knows under its own key and that a draft leaves out unless they are said."""

TOKEN_BUDGET = 60_000
"""Tokens that training and scoring together may put through the model of a draft nobody sized."""
CHARS_PER_TOKEN, TEMPLATE_TOKENS = 3.5, 20
TARGET_SHARE = 0.03
"""Share of the rows held out as target when none is named."""

_TEMPLATES = (
    ("qwen", "qwen"),
    ("llama-3", "llama3"),
    ("llama3", "llama3"),
    ("llama 3", "llama3"),
    ("llama", "llama2"),
    ("mistral", "mistral"),
    ("gemma", "gemma"),
    ("phi", "phi"),
    ("deepseek", "deepseek"),
    ("glm", "glm4"),
    ("baichuan", "baichuan2"),
    ("internlm", "intern2"),
)


def missing_method(wish: TrainingWish, quote: str) -> MissingCapability:
    """The method as a missing capability named `train.<paradigm>.<method>`."""
    wanted: dict[str, Any] = {
        "stage": wish.stage,
        "finetuning": wish.finetuning,
        "paradigm": wish.paradigm,
        "method": wish.method,
        **wish.settings,
    }
    if wish.model:
        wanted["model"] = wish.model
    if wish.target:
        wanted["target"] = wish.target.key
    offered = "static training, or dynamic_select with " + ", ".join(selectors())
    return MissingCapability(
        name=f"train.{wish.paradigm}.{wish.method}",
        asked_for="train",
        offered=offered,
        wanted=wanted,
        quote=quote,
        before=(),
    )


_PHASES = (
    ("reference", r"reference|referenc|参考"),
    ("proxy", r"proxy|代理"),
    ("final", r"final|real run|main run|full run|actual run|then train|treino final|entrenamiento final|正式|最终"),
)


def missing_methods(reading: Reading, wish: TrainingWish, quote: str) -> list[MissingCapability]:
    """The method, or its phases one after another where the request names them (DoReMi: three runs)."""
    whole = missing_method(wish, quote)
    named = [phase for phase, pattern in _PHASES if re.search(pattern, reading.request.masked)]
    if wish.method != "doremi" or len(named) < 2:
        return [whole]
    names = [f"{whole.name}.{phase}" for phase in named]
    return [
        whole.model_copy(update={"name": name, "after": tuple(names[max(0, at - 1) : at])})
        for at, name in enumerate(names)
    ]


def train_block(
    reading: Reading, wish: TrainingWish, dataset: str, target: str | None
) -> tuple[dict[str, Any], list[str]]:
    """The block in YAML v1 shape, and the assumptions made for it.

    Args:
        reading: the request.
        wish: what it says about training; the method must be available.
        dataset: id of the output trained on.
        target: id of the registered target output, if the method aims at one.
    """
    assumptions: list[str] = []
    said = wish.settings
    model = wish.model or "smollm2"
    if not wish.model:
        assumptions.append(NO_MODEL)
    factory: dict[str, Any] = {
        "model_name_or_path": model,
        "stage": wish.stage,
        "do_train": True,
        "finetuning_type": "lora" if wish.finetuning == "qlora" else wish.finetuning,
    }
    if wish.finetuning == "qlora":
        factory["quantization_bit"] = 4
    if wish.finetuning in {"lora", "qlora"}:
        factory |= {"lora_rank": said.get("lora_rank", 8), "lora_target": "all"}
    template = next((name for word, name in _TEMPLATES if word in model.lower()), None)
    if template:
        factory["template"] = template
    factory |= {
        "cutoff_len": said.get("cutoff_len", 512),
        "per_device_train_batch_size": said.get("batch_size", BATCH),
        "gradient_accumulation_steps": said.get("gradient_accumulation", ACCUMULATION),
        "learning_rate": said.get("learning_rate", 1.0e-4),
        "logging_steps": 1,
        "report_to": "none",
    }
    factory |= {key: said[name] for name, key in _SAID_KEYS if name in said}
    if "epochs" in said:
        factory["num_train_epochs"] = float(said["epochs"])
    if wish.stage in {"dpo", "kto"}:
        factory["pref_beta"] = said.get("beta", 0.1)
    block: dict[str, Any] = {"engine": "llamafactory", "dataset": dataset}
    if target:
        block["target_dataset"] = target
    if wish.paradigm == "select":
        block["dataflex"], more = _selection(reading, wish, factory)
        assumptions += more
    block["llamafactory"] = factory
    return block, assumptions


def _affordable_window(
    reading: Reading, section: dict[str, Any], rows_a_step: int, pool: int
) -> tuple[int, int] | None:
    """Candidate rows a round that keep a small run within `TOKEN_BUDGET`, and the tokens of that run.

    None where the pool is unknown or fits whole. Tokens are characters over `CHARS_PER_TOKEN`. Training rows and, each
    round, the target rows are paid first.
    """
    if reading.facts is None or not pool:
        return None
    chars = sum(c.mean_chars for c in reading.facts.columns if c.name in reading.text())
    tokens_a_row = chars / CHARS_PER_TOKEN + TEMPLATE_TOKENS
    rounds, update = section["update_times"], section["update_step"]
    trained = (section["warmup_step"] + rounds * update) * rows_a_step
    scored = (TOKEN_BUDGET / tokens_a_row - trained) / rounds - pool * TARGET_SHARE
    window = max(int(scored), 2 * update * rows_a_step)
    tokens = (trained + rounds * (window + pool * TARGET_SHARE)) * tokens_a_row
    return (window, round(tokens)) if window < pool else None


def _rounds_for(rows: int, rows_a_step: int, rounds: int | None) -> dict[str, int]:
    """Steps a round and rounds that take `rows` rows in all, exactly where they divide, else rounded up."""
    steps = math.ceil(rows / rows_a_step)
    times = rounds or next((n for n in (2, 3, 4, 5) if steps % n == 0), 1)
    return {"update_every": math.ceil(steps / times), "update_times": times}


def _selection(reading: Reading, wish: TrainingWish, factory: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    said, notes = wish.settings, []
    section: dict[str, Any] = {"train_type": PARADIGMS[wish.paradigm], "component_name": wish.method}
    params: dict[str, Any] = {}
    if wish.method == "less":
        params = {"gradient_type": "adam", "proj_dim": said.get("proj_dim", 8192)} | (
            {"seed": said["seed"]} if "seed" in said else {}
        )
    section["component_params"] = params
    rows_a_step = factory["per_device_train_batch_size"] * factory["gradient_accumulation_steps"]
    if "n" in said and not {"update_every", "ratio"} & set(said):
        said = said | _rounds_for(said["n"], rows_a_step, said.get("update_times"))
    pool = sum(facts.rows or 0 for facts in reading.inspection.inputs) if reading.inspection else 0
    ratio = said.get("ratio")
    update = said.get("update_every") or (max(1, round(ratio * pool / rows_a_step)) if ratio and pool else 8)
    section |= {
        "warmup_step": said.get("warmup_steps", 4),
        "update_step": update,
        "update_times": said.get("update_times", 2),
    }
    affordable = None if ratio else _affordable_window(reading, section, rows_a_step, pool)
    if affordable:
        section["candidate_window"], tokens = affordable
        notes.append(
            f"each round scores {affordable[0]} candidate rows, about {tokens:,} tokens through the model in all; "
            "candidate_window: null scores the whole pool"
        )
    if ratio:
        window = math.ceil(update * rows_a_step / ratio - 1e-9)
        section["candidate_window"] = window
        notes.append(f"{ratio:.2%} of what is scored: {update * rows_a_step} of {window} candidate rows a round")
    if "seed" in said:
        section["seed"] = said["seed"]
    return section, notes
