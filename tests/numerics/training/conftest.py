"""A tiny Qwen2 with LoRA in float64, rows of unequal length, and the naive batch-1 loop everything is compared with."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from datamill.training.contracts import AdamMoments, ScoringContext, ScoringRows  # noqa: E402

VOCABULARY = 23


def build_model(dtype: Any = torch.float64, seed: Any = 0, dropout: Any = 0.1, bias: Any = "none") -> Any:
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True, pad_token_id=0,
    )  # fmt: skip
    base = Qwen2ForCausalLM(config)
    lora = LoraConfig(
        r=3, lora_alpha=6, lora_dropout=dropout, bias=bias, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    model = get_peft_model(base, lora).to(dtype)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:  # at its initial zero, every lora_A gradient would vanish
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=dtype))
    return model.train()


class Corpus:
    """Rows of token ids with a masked prompt; ids need not start at zero."""

    def __init__(self, lengths: Any, first_id: Any = 0, seed: Any = 3, pad: Any = 0) -> None:
        rng = np.random.default_rng(seed)
        self.rows = {first_id + i: rng.integers(1, VOCABULARY, n).tolist() for i, n in enumerate(lengths)}
        self.ids = np.array(list(self.rows), dtype=np.int64)
        self.lengths = np.array([len(r) for r in self.rows.values()], dtype=np.int64)
        self.pad = pad

    def collate(self, ids: Any) -> Any:
        width = max(len(self.rows[i]) for i in ids) + self.pad
        batch = {key: torch.zeros(len(ids), width, dtype=torch.long) for key in ("input_ids", "attention_mask")}
        batch["labels"] = torch.full((len(ids), width), -100)
        for place, i in enumerate(ids):
            row = torch.tensor(self.rows[i])
            batch["input_ids"][place, : len(row)] = row
            batch["attention_mask"][place, : len(row)] = 1
            batch["labels"][place, 2 : len(row)] = row[2:]
        return batch

    def scoring_rows(self, groups: Any = None) -> Any:
        return ScoringRows(self.ids, self.lengths, self.collate, None if groups is None else np.asarray(groups))


def naive_gradients(model: Any, corpus: Any) -> Any:
    """Gradients of each row's mean loss by parameter name, one unpadded row at a time.

    The loss is written out because Hugging Face's rounds logits to float32.
    """
    was_training = model.training
    model.eval()
    parameters = {n: p for n, p in model.named_parameters() if p.requires_grad}
    found = {}
    for i in corpus.ids.tolist():
        batch = Corpus.collate(_unpadded(corpus), [i])
        log_probability = model(**batch).logits[0, :-1].log_softmax(-1)
        labels = batch["labels"][0, 1:]
        supervised = (labels != -100).nonzero().flatten()
        loss = -log_probability[supervised, labels[supervised]].mean()
        found[i] = dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True))
    model.train(was_training)
    return found


def _unpadded(corpus: Any) -> Any:
    return SimpleNamespace(rows=corpus.rows, pad=0)


def warmed_up(model: Any, corpus: Any, steps: Any = 5) -> Any:
    """A real AdamW after `steps` steps, and its moments by parameter name."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, betas=(0.9, 0.99))
    for _ in range(steps):
        model(**corpus.collate(corpus.ids.tolist())).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    moments = {}
    for name, parameter in model.named_parameters():
        if parameter in optimizer.state:
            state = optimizer.state[parameter]
            moments[name] = AdamMoments(state["exp_avg"], state["exp_avg_sq"], int(state["step"]), 0.9, 0.99, 1e-8)
    return optimizer, moments


def flat(gradients: Any) -> Any:
    return torch.cat([gradients[name].flatten() for name in sorted(gradients)])


def relative(found: Any, expected: Any) -> Any:
    return float((found - expected).norm() / expected.norm())


@pytest.fixture
def tiny() -> Any:
    """Everything a numerics test needs, freshly built."""
    model = build_model()
    corpus = Corpus([9, 5, 12, 7, 7, 4, 10])
    targets = Corpus([6, 8, 5, 11], first_id=100, seed=4)
    optimizer, moments = warmed_up(model, corpus)

    def context(**changes: Any) -> Any:
        values = {"model": model, "rows": corpus.scoring_rows(), "targets": targets.scoring_rows([0, 0, 1, 1]),
                  "moments": moments, "token_budget": 30}  # fmt: skip
        return ScoringContext(**(values | changes))

    return SimpleNamespace(
        model=model, corpus=corpus, targets=targets, optimizer=optimizer, moments=moments, context=context,
        build_model=build_model, Corpus=Corpus, naive=naive_gradients, flat=flat, relative=relative,
    )  # fmt: skip
