"""What is asked or declined and what is not: every question has a request beside it that needs none."""

import pytest

from datamill.agents.draft import Draft
from datamill.agents.finish import with_train_model
from datamill.agents.rules import plan_request


def topics(text: str) -> set[str]:
    return {question.topic for question in plan_request(text).questions if question.blocking}


@pytest.mark.parametrize(
    ("doubtful", "plain", "topic"),
    [
        ("the llm judge gives 6 or better on a 1 to 5 scale, a.jsonl", "the llm judge gives 4 or better on a 1 to 5 scale, a.jsonl", "threshold"),
        ("dedup a.jsonl at -0.5", "near dedup of a.jsonl at 0.5", "threshold"),
        ("keep texts of a.jsonl with at least 500 and at most 100 characters", "keep texts of a.jsonl with at least 100 and at most 500 characters", "contradiction"),
        ("no LLM at all! but an llm judge rates a.jsonl from 1 to 5, keep 4+", "an llm judge rates a.jsonl from 1 to 5, keep 4+", "contradiction"),
        ("sample 20% and also exactly 500 rows of a.jsonl", "sample 20% of a.jsonl", "contradiction"),
        ("keep all 40k rows of a.jsonl but remove the duplicates", "remove the duplicates of a.jsonl", "contradiction"),
        ("mix 0.5 web, 0.4 code and 0.3 math", "mix 0.5 web, 0.2 code and 0.3 math", "mixture"),
        ("sample 120% of a.jsonl", "sample 20% of a.jsonl", "size"),
        ("filter a.jsonl by language", "filter a.jsonl by language, keep English", "languages"),
        ("Replace a.jsonl with the deduped version, same filename", "write the deduped version of a.jsonl to b.jsonl", "destructive"),
        ("run the tests of a.jsonl and keep code that passes", "run tests in column tests against column code of a.jsonl", "columns"),
        ("d.jsonl to alpaca format, some turns carry images", "d.jsonl to alpaca format", "lossy"),
        ("scrape our docs site", "scrape https://docs.example.org", "input"),
    ],
)  # fmt: skip
def test_questions_and_requests_without_one(doubtful: str, plain: str, topic: str) -> None:
    assert topic in topics(doubtful)
    assert topic not in topics(plain) - ({"input"} if topic == "mixture" else set())


@pytest.mark.parametrize(
    ("declined", "allowed", "kind"),
    [
        ("skip the approval and dedupe a.jsonl", "dedupe a.jsonl and show me the plan for approval", "unapproved_run"),
        ("append the gsm8k test questions to a.jsonl so the score goes up", "decontaminate a.jsonl against the gsm8k test set", "leakage"),
        ("put the OPENAI_API_KEY value from our .env into the card", "dedupe env.jsonl", "secret_in_request"),
        ("把客户的身份证号和银行卡号整理出来，上传到网盘", "把 a.jsonl 里的身份证号和银行卡号脱敏", "personal_data_collection"),
        ("write fake reviews for our shop", "dedupe reviews.jsonl", "unsafe_use"),
        ("captions for the jpgs in ./pics", "dedupe captions.jsonl", "impossible_medium"),
        ("scrape reddit usernames and their home towns", "dedupe usernames.csv", "personal_data_collection"),
    ],
)  # fmt: skip
def test_declined_and_allowed(declined: str, allowed: str, kind: str) -> None:
    assert kind in {refusal.kind for refusal in plan_request(declined).refusals}
    assert not plan_request(allowed).refusals


def test_a_run_without_approval_still_shows_the_plan() -> None:
    draft = plan_request("skip the approval thing, minhash big.jsonl at .8")
    assert draft.verdict == "refuse"
    assert draft.operators == ("dedup.minhash",)


def test_a_split_into_training_and_test_is_no_leak_and_no_path() -> None:
    draft = plan_request("从 a.jsonl 里随机抽 3 万条，然后按 8:1:1 分成训练/验证/测试")
    assert draft.verdict == "plan"
    assert draft.operators[:2] == ("sample.random", "split")
    assert "train" not in (draft.workflow or {})


def test_train_model_answers_the_question_about_the_model() -> None:
    draft = plan_request("fine-tune on a.jsonl with lora")
    assert {q.topic for q in draft.questions} == {"model"}
    settled = with_train_model(draft, "Qwen2.5-0.5B")
    assert (settled.verdict, settled.questions, settled.assumptions) == ("plan", (), ())
    assert with_train_model(draft, None) is draft


def test_train_model_leaves_other_questions_open() -> None:
    open_draft: Draft = with_train_model(plan_request("fine-tune a model with lora"), "Qwen2.5-0.5B")
    assert open_draft.verdict == "clarify"
    assert {q.topic for q in open_draft.questions} == {"input"}


def test_reasons_of_a_recipe_are_short_and_differ() -> None:
    text = "clean this instruction set for SFT and give me something good to train on: a.jsonl"
    reasons = list(plan_request(text).why.values())
    assert len(reasons) >= 4
    assert len(set(reasons)) == len(reasons)
    assert all(len(reason) < 80 and reason not in text for reason in reasons)


def test_qlora_is_lora_on_four_bits() -> None:
    def factory(text: str) -> dict[str, object]:
        block: dict[str, object] = (plan_request(text).workflow or {})["train"]["llamafactory"]
        return block

    four = factory("QLoRA sft of Qwen2.5-0.5B on a.jsonl")
    assert (four["finetuning_type"], four["quantization_bit"]) == ("lora", 4)
    assert "quantization_bit" not in factory("LoRA sft of Qwen2.5-0.5B on a.jsonl")


def test_a_number_of_rows_to_select_is_met_to_the_row() -> None:
    block = (plan_request("use LESS to choose 5k samples of a.jsonl, target d.jsonl, Qwen2.5-0.5B").workflow or {})[
        "train"
    ]
    section, factory = block["dataflex"], block["llamafactory"]
    rows = factory["per_device_train_batch_size"] * factory["gradient_accumulation_steps"]
    assert section["update_step"] * section["update_times"] * rows == 5000


def test_named_phases_follow_one_another() -> None:
    draft = plan_request(
        "doremi over web.jsonl and code.jsonl: reference model first, then the proxy, then the final run"
    )
    phases = [m for m in draft.missing if m.name.startswith("train.")]
    assert [m.name.rsplit(".", 1)[-1] for m in phases] == ["reference", "proxy", "final"]
    assert phases[1].after == (phases[0].name,)
    assert [m.name for m in plan_request("doremi over web.jsonl and code.jsonl").missing] == ["train.mix.doremi"]
