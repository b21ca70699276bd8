"""Gradients of single samples from a batched pass equal the batch-1 loop, whatever the batch and the engine do."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")


from datamill.errors import DatamillError  # noqa: E402
from datamill.training.signals.guard import scoring_guard  # noqa: E402
from datamill.training.signals.per_sample_gradients import (  # noqa: E402
    per_sample_gradients,
    trainable_linears,
    trainable_names,
    weight_gradients,
)

pytestmark = pytest.mark.train


def collect(model: Any, batch: Any) -> Any:
    found = {}
    names = trainable_names(model)
    with scoring_guard(model):
        losses = per_sample_gradients(model, names, batch, found.__setitem__)
    return found, losses


def assert_equals_loop(found: Any, expected: Any, ids: Any, relative: Any) -> None:
    for place, i in enumerate(ids):
        assert set(found) == set(expected[i])
        for name, gradient in expected[i].items():
            assert relative(found[name][place], gradient) <= 1e-10, (name, i)


def test_golden_products_of_a_linear_and_a_lora_layer() -> None:
    x1, e1 = torch.tensor([[[1.0, 2], [0, 1]]]), torch.tensor([[[1.0, 0, -1], [2, 1, 0]]])
    x2, e2 = torch.tensor([[[1.0, 1], [3, 0]]]), torch.tensor([[[0.0, 1, 1], [1, 0, 0]]])
    first, second = weight_gradients(torch.cat([x1, x2]), torch.cat([e1, e2]))
    assert first.tolist() == [[1, 4], [0, 1], [-1, -2]]
    assert float((first * second).sum()) == 1
    assert float(first.square().sum()) == 23
    scale, a, b = 2.0, torch.tensor([[1.0, -1]]), torch.tensor([[0.5], [0], [1]])
    assert weight_gradients(x1, scale * e1 @ b).flatten().tolist() == [-1, 0]
    assert weight_gradients(x1 @ a.T, scale * e1).flatten().tolist() == [-6, -2, 2]


def test_golden_segments_of_a_packed_row() -> None:
    x = torch.tensor([[[1.0, 0], [0, 1], [1, 1]]], dtype=torch.float64)
    e = torch.tensor([[[1.0, -1], [2, 0], [0, 3]]], dtype=torch.float64) / 3
    members = torch.tensor([[[True, True, False], [False, False, True]]])
    segments = weight_gradients(x, e, members)
    torch.testing.assert_close(segments.sum(0), weight_gradients(x, e)[0])
    torch.testing.assert_close(weight_gradients(x, e)[0].flatten(), torch.tensor([1, 2, 2, 3], dtype=torch.float64) / 3)
    assert (segments[0] * 3 / 2).flatten().tolist() == pytest.approx([0.5, 1, -0.5, 0])
    assert (segments[1] * 3 / 1).flatten().tolist() == pytest.approx([0, 0, 3, 3])


@pytest.mark.parametrize("extra_padding", [0, 5])
@pytest.mark.parametrize("checkpointing", ["none", "non-reentrant", "reentrant"])
def test_equals_the_batch_one_loop(tiny: Any, checkpointing: Any, extra_padding: Any) -> None:
    expected = tiny.naive(tiny.model, tiny.corpus)
    if checkpointing != "none":
        tiny.model.enable_input_require_grads()
        tiny.model.gradient_checkpointing_enable({"use_reentrant": checkpointing == "reentrant"})
        layer = tiny.model.get_base_model().model.layers[0]
        calls = []
        original = layer._gradient_checkpointing_func
        for each in tiny.model.get_base_model().model.layers:
            each._gradient_checkpointing_func = lambda *a, **k: calls.append(1) or original(*a, **k)
    tiny.corpus.pad = extra_padding
    ids = tiny.corpus.ids.tolist()
    found, losses = collect(tiny.model, tiny.corpus.collate(ids))
    assert_equals_loop(found, expected, ids, tiny.relative)
    assert losses.shape == (len(ids),)
    if checkpointing != "none":
        assert len(calls) == 2, "the layers did not checkpoint"


def test_trained_biases_are_covered(tiny: Any) -> None:
    model = tiny.build_model(bias="all")
    names = trainable_names(model)
    assert any(name.endswith(".bias") for name in names)
    ids = tiny.corpus.ids.tolist()
    found, _ = collect(model, tiny.corpus.collate(ids))
    assert_equals_loop(found, tiny.naive(model, tiny.corpus), ids, tiny.relative)


def pack(corpus: Any, ids: Any, block_diagonal: Any = True) -> Any:
    """One packed row as LLaMA-Factory's neat packing makes it: 4-d mask, positions that restart."""
    tokens = [t for i in ids for t in corpus.rows[i]]
    segments = torch.tensor([[k + 1 for k, i in enumerate(ids) for _ in corpus.rows[i]]])
    labels = torch.tensor([[t if place >= 2 else -100 for i in ids for place, t in enumerate(corpus.rows[i])]])
    same = segments[:, :, None] == segments[:, None, :]
    allowed = same.tril() if block_diagonal else torch.ones_like(same).tril()
    mask = (~allowed).double()[:, None] * torch.finfo(torch.float64).min
    positions = torch.tensor([[place for i in ids for place in range(len(corpus.rows[i]))]])
    return {
        "input_ids": torch.tensor([tokens]), "labels": labels, "attention_mask": mask, "position_ids": positions,
        "segments": segments, "sample_ids": torch.tensor([ids]),
    }  # fmt: skip


def test_neat_packing_is_exact_by_segment(tiny: Any) -> None:
    ids = [2, 5, 1]
    found, losses = collect(tiny.model, pack(tiny.corpus, ids))
    assert losses.shape == (3,)
    assert_equals_loop(found, tiny.naive(tiny.model, tiny.corpus), ids, tiny.relative)


def test_a_prediction_across_a_boundary_does_not_count(tiny: Any) -> None:
    ids = [2, 5, 1]
    batch = pack(tiny.corpus, ids)
    whole = batch | {"labels": batch["input_ids"].clone()}
    found, _ = collect(tiny.model, whole)
    leaky = whole["labels"].clone()
    starts = [0, *torch.tensor([len(tiny.corpus.rows[i]) for i in ids]).cumsum(0).tolist()[:-1]]
    leaky[0, starts] = -100
    same, _ = collect(tiny.model, batch | {"labels": leaky})
    for name in found:
        torch.testing.assert_close(found[name], same[name], rtol=1e-12, atol=1e-14)


def test_plain_packing_would_be_wrong_which_is_why_it_is_refused(tiny: Any) -> None:
    ids = [2, 5, 1]
    found, _ = collect(tiny.model, pack(tiny.corpus, ids, block_diagonal=False))
    expected = tiny.naive(tiny.model, tiny.corpus)
    errors = [tiny.relative(found[name][1], expected[5][name]) for name in found]
    assert max(errors) > 0.1


def test_a_row_without_supervised_tokens_has_a_nan_loss_and_no_gradient(tiny: Any) -> None:
    ids = tiny.corpus.ids.tolist()
    batch = tiny.corpus.collate(ids)
    batch["labels"][1] = -100
    found, losses = collect(tiny.model, batch)
    assert losses.isnan().nonzero().flatten().tolist() == [1]
    assert all(float(gradient[1].abs().max()) == 0 for gradient in found.values())
    others = [i for i in ids if i != 1]
    expected = tiny.naive(tiny.model, tiny.corpus)
    kept = {name: gradient[others] for name, gradient in found.items()}
    assert_equals_loop(kept, expected, others, tiny.relative)


def test_half_precision_is_summed_in_float32(tiny: Any) -> None:
    model = tiny.build_model(dtype=torch.bfloat16)
    found, _ = collect(model, tiny.corpus.collate(tiny.corpus.ids.tolist()))
    assert {gradient.dtype for gradient in found.values()} == {torch.float32}


class Net(torch.nn.Module):
    """Just enough of a causal language model for a refusal."""

    def __init__(self, twice: Any = False, convolution: Any = False) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(23, 8)
        self.middle = torch.nn.Linear(8, 8)
        self.other = torch.nn.Conv1d(8, 8, 1) if convolution else torch.nn.Identity()
        self.head = torch.nn.Linear(8, 23)
        self.twice = twice
        for module in (self.embedding, self.head):
            module.requires_grad_(False)

    def get_input_embeddings(self) -> Any:
        return self.embedding

    def forward(self, input_ids: Any, attention_mask: Any, use_cache: Any) -> Any:
        hidden = self.middle(self.embedding(input_ids))
        if self.twice:
            hidden = self.middle(hidden)
        return type("Output", (), {"logits": self.head(hidden)})


def test_layers_that_cannot_be_handled_are_named(tiny: Any) -> None:
    with pytest.raises(DatamillError, match=r"DM-SIG-102.*other\.bias, other\.weight"):
        trainable_linears(Net(convolution=True))
    tiny.model.get_input_embeddings().weight.requires_grad_(True)
    with pytest.raises(DatamillError, match="embed_tokens") as caught:
        trainable_linears(tiny.model)
    assert any("lm_head" in name for name in caught.value.issues[0].context["parameters"])


def test_a_layer_that_runs_twice_is_refused() -> None:
    batch = {key: torch.ones(2, 4, dtype=torch.long) for key in ("input_ids", "attention_mask", "labels")}
    found, _ = collect(Net(), batch)
    assert set(found) == {"middle.weight", "middle.bias"}
    with pytest.raises(DatamillError, match="`middle`, which runs more than once"):
        collect(Net(twice=True), batch)


def test_nothing_trainable_is_said() -> None:
    model = Net().requires_grad_(False)
    with pytest.raises(DatamillError, match="DM-SIG-107"):
        trainable_linears(model)
