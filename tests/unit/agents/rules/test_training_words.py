"""Training wishes: stage, model, method and numbers; what is not built is named, never imitated."""

from typing import Any

import pytest

from datamill.agents.inspection import ColumnFacts, InputFacts, Inspection
from datamill.agents.rules import plan_request
from datamill.agents.rules.reading import Reading
from datamill.agents.rules.request import Request


def wish(text: str) -> Any:
    return Reading(Request(text)).training


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LoRA fine-tune Qwen2.5-0.5B on a.jsonl", ("sft", "lora", "static", "", "Qwen2.5-0.5B")),
        ("full fine-tune of SmolLM2-135M on a.jsonl", ("sft", "full", "static", "", "SmolLM2-135M")),
        ("pretrain Llama 3.2 1B on a.jsonl", ("pt", "lora", "static", "", "Llama 3.2 1B")),
        ("dpo with meta-llama/Llama-3.1-8B on a.jsonl", ("dpo", "lora", "static", "", "meta-llama/Llama-3.1-8B")),
        ("train with LESS", ("sft", "lora", "select", "less", "")),
        ("train using less", ("sft", "lora", "select", "less", "")),
        ("fine-tune with NEAR", ("sft", "lora", "select", "near", "")),
        ("cluster-LESS training", ("sft", "lora", "select", "cluster_less", "")),
        ("entrena con pérdida delta", ("sft", "lora", "select", "delta_loss", "")),
        ("train, picking samples at random", ("sft", "lora", "select", "random", "")),
        ("DoReMi then train", ("sft", "lora", "mix", "doremi", "")),
        ("train and downweight noisy rows by loss", ("sft", "lora", "reweight", "loss", "")),
        ("训练时给噪声样本降权", ("sft", "lora", "reweight", "loss", "")),
        ("train easy first", ("sft", "lora", "order", "sorting", "")),
    ],
)
def test_what_is_wished(text: str, expected: tuple[str, ...]) -> None:
    found = wish(text)
    assert (found.stage, found.finetuning, found.paradigm, found.method, found.model) == expected


@pytest.mark.parametrize(
    "text",
    [
        "clean a.jsonl before SFT",
        "prepare data for training",
        "split into training set and test set",
        "divida em treino e teste",
        "less than 5 words go",
        "conjunto de entrenamiento en a.csv",
        "build an SFT set",
        "exact dedup, no training",
        "不训练，只去重",
    ],
)
def test_what_is_no_training(text: str) -> None:
    assert wish(text) is None


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("train, pick 5% with LESS", "ratio", 0.05),
        ("train with LESS on half of it", "ratio", 0.5),
        ("train with LESS, 2,000 rows", "n", 2000),
        ("train with LESS, refresh every 40 steps", "update_every", 40),
        ("train with LESS, warmup 20 steps", "warmup_steps", 20),
        ("train with LESS, 5 updates of the selection", "update_times", 5),
        ("train for 3 epochs", "epochs", 3),
        ("训练三轮", "epochs", 3),
        ("train, learning rate 2e-5", "learning_rate", 2e-5),
        ("train, lr 0.0001", "learning_rate", 1e-4),
        ("train, batch size 16", "batch_size", 16),
        ("train lora rank 32", "lora_rank", 32),
        ("train with cutoff 2048", "cutoff_len", 2048),
        ("train 500 steps", "steps", 500),
        ("dpo, beta 0.2", "beta", 0.2),
        ("entrena, semilla 7", "seed", 7),
        ("train with effective batch 32", "gradient_accumulation", 16),
    ],
)
def test_numbers_of_training(text: str, name: str, value: float) -> None:
    assert wish(text).settings[name] == value


FACTS = Inspection(
    inputs=(
        InputFacts(
            path="a.jsonl",
            rows=1000,
            columns=(
                ColumnFacts(name="question", role="question", mean_chars=150),
                ColumnFacts(name="answer", role="answer", mean_chars=180),
            ),
        ),
    )
)


def train_of(text: str) -> dict[str, Any]:
    draft = plan_request(text, FACTS)
    assert draft.workflow is not None, draft
    block: dict[str, Any] = draft.workflow["train"]
    return block


def test_a_share_becomes_a_window_of_candidates() -> None:
    section = train_of("train tiny with LESS, pick 5%, every 10 steps")["dataflex"]
    assert section["candidate_window"] == 10 * 8 / 0.05
    assert section["update_step"] == 10


def test_without_a_share_the_token_budget_sizes_the_window() -> None:
    section = train_of("train smollm2 with LESS")["dataflex"]
    rounds, update, window = section["update_times"], section["update_step"], section["candidate_window"]
    rows = (section["warmup_step"] + rounds * update) * 8 + rounds * (window + 0.03 * 1000)
    tokens = rows * (330 / 3.5 + 20)
    assert 0.97 * 60_000 < tokens <= 60_000
    assert window >= 2 * update * 8


def test_less_without_a_target_holds_rows_out_that_are_not_trained_on() -> None:
    draft = plan_request("train tiny with LESS", FACTS)
    assert draft.workflow is not None
    steps = {step["id"]: step for step in draft.workflow["steps"]}
    conditions = {step["params"]["expr"] for step in steps.values() if step["operator"] == "filter.expr"}
    assert conditions == {'split == "train"', 'split == "target"'}
    train = draft.workflow["train"]
    assert (
        draft.workflow["outputs"][train["dataset"]]["from"]
        != draft.workflow["outputs"][train["target_dataset"]]["from"]
    )


@pytest.mark.parametrize("method", ["NEAR", "TSDS", "delta loss", "DoReMi", "ODM"])
def test_a_method_that_is_not_built_is_named_and_not_replaced(method: str) -> None:
    draft = plan_request(f"train Qwen2.5-0.5B with {method} on a.jsonl, seed 3")
    assert draft.workflow is not None
    assert "train" not in draft.workflow
    missing = next(m for m in draft.missing if m.name.startswith("train."))
    assert missing.wanted["seed"] == 3
    assert missing.wanted["model"] == "Qwen2.5-0.5B"
    assert "less" in missing.offered


def test_preference_training_has_ranked_pairs_and_no_selection() -> None:
    draft = plan_request("dpo Qwen2.5-0.5B on preference pairs in a.jsonl, beta 0.3")
    assert draft.workflow is not None
    block = draft.workflow["train"]
    assert "dataflex" not in block
    assert block["llamafactory"]["pref_beta"] == 0.3
    assert draft.workflow["outputs"][block["dataset"]]["llamafactory"]["ranking"] is True


def test_a_named_model_has_its_template_and_an_unnamed_one_is_an_assumption() -> None:
    assert train_of("fine-tune Qwen2.5-0.5B")["llamafactory"]["template"] == "qwen"
    draft = plan_request("fine-tune on it", FACTS)
    assert any("smollm2" in assumption for assumption in draft.assumptions)
    assert plan_request("fine-tune on a.jsonl").question is not None
