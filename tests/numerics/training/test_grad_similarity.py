"""LESS's signal: golden aggregates, the naive computation on a real LoRA model, and no trace left behind."""

import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from datamill.errors import DatamillError  # noqa: E402
from datamill.training.contracts import AdamMoments, ScoringRows, SignalRequest, SignalTable  # noqa: E402
from datamill.training.registry import build_provider  # noqa: E402
from datamill.training.selectors.less import influence  # noqa: E402
from datamill.training.signals.adam_features import adam_feature  # noqa: E402
from datamill.training.signals.grad_similarity import Cosines, GroupSums  # noqa: E402

pytestmark = pytest.mark.train

T1, T2 = [[3.0, 4], [1, 0], [0, -2]], [[0.0, 1], [2, 0], [-1, 0]]
V1, V2 = [[1.0, 0], [1, 1], [0, 1], [0, 2]], [[1.0, 0], [0, 1], [0, 3], [1, 1]]


def cosines_of_vectors(train: Any, target: Any, groups: Any, compat: Any) -> Any:
    sums = GroupSums(max(groups) + 1)
    sums.members(groups)
    values = torch.tensor(target, dtype=torch.float64)
    sums.add("w", values if compat == "none" else values / values.norm(dim=1, keepdim=True))
    table = Cosines(sums.directions(None, unit=compat == "none"), {})
    table.add("w", torch.tensor(train, dtype=torch.float64))
    return table.values(torch.zeros(len(train)))


@pytest.mark.parametrize(
    ("compat", "golden"),
    [
        ("official", [0.81785113, 0.73570226, -0.40236893]),
        ("none", [0.85671417, 0.83198705, -0.53384466]),
    ],
)
def test_golden_scores_over_two_checkpoints_and_two_subtasks(compat: Any, golden: Any) -> None:
    tables = [cosines_of_vectors(t, v, [0, 0, 1, 1], compat) for t, v in ((T1, V1), (T2, V2))]
    assert influence(tables, [2e-5, 1e-5]) == pytest.approx(golden, abs=1e-7)


def test_golden_scores_of_dataflex() -> None:
    table = cosines_of_vectors(T2, V2, [0, 0, 0, 0], "dataflex")
    assert influence([table], [1.0]) == pytest.approx([0.6767767, 0.4267767, -0.4267767], abs=1e-7)


def naive_similarity(tiny: Any, gradient_type: Any = "adam", compat: Any = "none") -> Any:
    """Batch-1 gradients, whole vectors, cosines by hand."""
    rows, targets = (tiny.naive(tiny.model, corpus) for corpus in (tiny.corpus, tiny.targets))
    features = []
    for gradients in rows.values():
        if gradient_type == "adam":
            steps = {n: adam_feature(g[None], tiny.moments[n], n, compat)[0] for n, g in gradients.items()}
        features.append(tiny.flat(steps if gradient_type == "adam" else gradients))
    target = torch.stack([tiny.flat(gradients) for gradients in targets.values()])
    features = torch.stack(features)
    unit = features / features.norm(dim=1, keepdim=True)
    if compat == "none":
        means = torch.stack([target[:2].mean(0), target[2:].mean(0)])
        return (unit @ (means / means.norm(dim=1, keepdim=True)).T).numpy(), features, target
    pairs = unit @ (target / target.norm(dim=1, keepdim=True)).T
    if compat == "official":
        return torch.stack([pairs[:, :2].mean(1), pairs[:, 2:].mean(1)], 1).numpy(), features, target
    return pairs.mean(1, keepdim=True).numpy(), features, target


def measure(context: Any, **params: Any) -> Any:
    provider = build_provider(SignalRequest("grad_similarity", {"projection": "none"} | params))
    provider.check(context)
    return provider.compute(context)


@pytest.mark.parametrize("gradient_type", ["adam", "sgd"])
@pytest.mark.parametrize("compat", ["none", "official", "dataflex"])
def test_exact_cosines_equal_the_naive_ones(tiny: Any, gradient_type: Any, compat: Any) -> None:
    expected, _, _ = naive_similarity(tiny, gradient_type, compat)
    table = measure(tiny.context(), gradient_type=gradient_type, compat=compat)
    assert table.ids.tolist() == tiny.corpus.ids.tolist()
    np.testing.assert_allclose(table.values, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("projection", ["sjlt", "rademacher"])
def test_projected_cosines_equal_the_projection_of_naive_features(tiny: Any, projection: Any) -> None:
    from datamill.training.signals.projection import make_projection

    _, features, target = naive_similarity(tiny)
    dim = 256
    matrix_of = make_projection(projection, dim, 7, 10**9)
    sizes = {n: p.numel() for n, p in tiny.model.named_parameters() if p.requires_grad}
    matrix = torch.cat([matrix_of.project(n, torch.eye(sizes[n], dtype=torch.float64)) for n in sorted(sizes)])
    small, goal = features @ matrix, target @ matrix
    means = torch.stack([goal[:2].mean(0), goal[2:].mean(0)])
    expected = torch.nn.functional.cosine_similarity(small[:, None], means[None], dim=2)
    table = measure(tiny.context(), projection=projection, proj_dim=dim, seed=7)
    np.testing.assert_allclose(table.values, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("token_budget", [1, 13, 30, 1000])
@pytest.mark.parametrize("projection", ["none", "sjlt"])
def test_batch_size_does_not_change_a_score(tiny: Any, token_budget: Any, projection: Any) -> None:
    reference = measure(tiny.context(token_budget=24), projection=projection, proj_dim=64)
    table = measure(tiny.context(token_budget=token_budget), projection=projection, proj_dim=64)
    np.testing.assert_allclose(table.values, reference.values, rtol=0, atol=1e-11)


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_ranks_together_give_the_table_of_one_process(tiny: Any, world_size: Any) -> Any:
    """Ranks run one after the other; sums of targets are exchanged in a first pass, tables in a second."""
    expected = measure(tiny.context())
    contributions = [[] for _ in range(world_size)]
    for rank in range(world_size):

        def record(part: Any, rank: Any = rank) -> Any:
            contributions[rank].append(part)
            return part + 1.0  # any finite value serves; only what was contributed matters here

        measure_local(tiny, rank, world_size, record)
    totals = [sum(parts) for parts in zip(*contributions, strict=True)]
    tables = []
    for rank in range(world_size):
        queue = iter(totals)
        tables.append(measure_local(tiny, rank, world_size, lambda _part, queue=queue: next(queue)))
    together = SignalTable.concat([table for table in tables if len(table)])
    assert together.ids.tolist() == expected.ids.tolist()
    np.testing.assert_allclose(together.values, expected.values, rtol=0, atol=1e-12)


def measure_local(tiny: Any, rank: Any, world_size: Any, reduce: Any) -> Any:
    provider = build_provider(SignalRequest("grad_similarity", {"projection": "none"}))
    return provider.compute(tiny.context(rank=rank, world_size=world_size, reduce=reduce))


def test_a_rank_without_targets_still_takes_part_in_the_sum(tiny: Any) -> Any:
    """Four target rows in one batch and two ranks: the second rank only has a filler."""
    shapes = {}
    for rank in range(2):
        shapes[rank] = []

        def record(part: Any, rank: Any = rank) -> Any:
            shapes[rank].append((part.shape, float(np.abs(part).sum())))
            return part + 1.0

        provider = build_provider(SignalRequest("grad_similarity", {"projection": "none"}))
        provider.compute(tiny.context(rank=rank, world_size=2, reduce=record, token_budget=1000))
    assert [shape for shape, _ in shapes[0]] == [shape for shape, _ in shapes[1]]
    assert all(mass == 0 for _, mass in shapes[1])


def everything(tiny: Any) -> Any:
    """Bytes of all that a scoring pass could have changed."""
    tensors = {f"p {n}": p.detach().clone() for n, p in tiny.model.named_parameters()}
    tensors |= {f"b {n}": b.clone() for n, b in tiny.model.named_buffers()}
    tensors |= {f"g {n}": p.grad.clone() for n, p in tiny.model.named_parameters() if p.grad is not None}
    for i, state in enumerate(tiny.optimizer.state.values()):
        tensors |= {f"o {i} {k}": torch.as_tensor(v).clone() for k, v in state.items()}
    identities = [(id(p.grad), p.requires_grad) for p in tiny.model.parameters()]
    modes = [m.training for m in tiny.model.modules()]
    hooks = sum(len(m._forward_hooks) + len(m._backward_hooks) for m in tiny.model.modules())
    generators = (random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes())
    return {k: v.numpy().tobytes() for k, v in tensors.items()}, identities, modes, hooks, generators


@pytest.mark.parametrize("signal", ["loss", "grad_similarity"])
def test_scoring_leaves_no_trace(tiny: Any, signal: Any) -> None:
    tiny.model.get_base_model().model.layers[1].self_attn.eval()  # an odd mode must survive
    tiny.model(**tiny.corpus.collate(tiny.corpus.ids.tolist())).loss.backward()
    before = everything(tiny)
    assert any(key.startswith("g ") for key in before[0])
    provider = build_provider(SignalRequest(signal))
    provider.check(tiny.context())
    provider.compute(tiny.context())
    assert everything(tiny) == before


def test_a_failing_pass_leaves_no_trace_either(tiny: Any) -> None:
    before = everything(tiny)
    with pytest.raises(DatamillError, match="DM-SIG-104"):
        measure(tiny.context(moments=None))
    assert everything(tiny) == before


def test_dropout_makes_no_difference_and_scores_repeat(tiny: Any) -> None:
    first = measure(tiny.context())
    torch.rand(17)
    np.testing.assert_array_equal(measure(tiny.context()).values, first.values)


def test_the_next_optimizer_step_is_untouched(tiny: Any) -> Any:
    def step() -> Any:
        model = tiny.build_model(seed=5)
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
        for scored in (False, tiny.scored):
            torch.manual_seed(11)
            model(**tiny.corpus.collate([0, 1, 2])).loss.backward()
            if scored:
                measure(tiny.context(model=model), gradient_type="sgd")
            model(**tiny.corpus.collate([3, 4])).loss.backward()
            optimizer.step()
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    tiny.scored = False
    plain = step()
    tiny.scored = True
    assert torch.equal(step(), plain)


def test_losses_equal_the_naive_ones(tiny: Any) -> None:
    table = build_provider(SignalRequest("loss")).compute(tiny.context())
    tiny.model.eval()
    for i, value in zip(table.ids.tolist(), table.values, strict=True):
        batch = tiny.corpus.collate([i])
        log_probability = tiny.model(**batch).logits[0, :-1].log_softmax(-1)
        labels = batch["labels"][0, 1:]
        kept = (labels != -100).nonzero().flatten()
        assert value == pytest.approx(-log_probability[kept, labels[kept]].mean().item(), rel=1e-12)


def test_a_row_without_supervised_tokens_has_no_similarity(tiny: Any) -> Any:
    collate = tiny.corpus.collate

    def blank(ids: Any) -> Any:
        batch = collate(ids)
        batch["labels"][[i == 3 for i in ids]] = -100
        return batch

    rows = ScoringRows(tiny.corpus.ids, tiny.corpus.lengths, blank)
    table = measure(tiny.context(rows=rows))
    assert np.isnan(table.values).all(axis=1).nonzero()[0].tolist() == [3]
    with pytest.raises(DatamillError, match=r"DM-SIG-002.*ids 3"):
        table.at(tiny.corpus.ids)
    good = np.delete(np.arange(7), 3)
    np.testing.assert_allclose(table.values[good], measure(tiny.context()).values[good], rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"targets": None}, "DM-SIG-105"), ({"packing": "plain"}, "DM-SIG-101"), ({"packing": "neat"}, "DM-SIG-101")],
)
def test_what_cannot_be_scored_is_refused_before_training(tiny: Any, changes: Any, code: Any) -> None:
    with pytest.raises(DatamillError, match=code):
        build_provider(SignalRequest("grad_similarity")).check(tiny.context(**changes))


def test_a_subtask_without_gradient_is_refused(tiny: Any) -> None:
    with pytest.raises(DatamillError, match=r"DM-SIG-106.*\[1\]"):
        measure(tiny.context(targets=tiny.targets.scoring_rows([0, 0, 2, 2])))


def test_two_subtasks_each_find_their_own_rows(tiny: Any) -> None:
    """Planted: rows 0-5 repeat the text of subtask 0, rows 6-11 of subtask 1, the others are random."""
    targets = tiny.Corpus([12, 12], first_id=0, seed=8)
    pool = tiny.Corpus([12] * 18, first_id=0, seed=9)
    for i in range(12):
        pool.rows[i] = list(targets.rows[i // 6])
        pool.rows[i][-1] = 1 + i
    # the optimizer's mean adds one vector to every feature, so the plain gradient shows the planted truth
    table = measure(tiny.context(rows=pool.scoring_rows(), targets=targets.scoring_rows([0, 1])), gradient_type="sgd")
    assert (table.values[:12].argmax(1) == np.repeat([0, 1], 6)).all()
    assert table.values[:12].max(1).min() > table.values[12:].max()
    shuffled = np.random.default_rng(0).permutation(table.values.max(1))
    assert len(set(np.argsort(-shuffled)[:12]) & set(range(12))) < 12


def test_moments_are_read_by_the_parameters_name(tiny: Any) -> None:
    name = next(iter(tiny.moments))
    incomplete = {n: m for n, m in tiny.moments.items() if n != name}
    with pytest.raises(DatamillError, match=name.replace(".", r"\.")):
        measure(tiny.context(moments=incomplete))
    other = dict(tiny.moments) | {name: AdamMoments(tiny.moments[name].exp_avg * 50, tiny.moments[name].exp_avg_sq, 5)}
    assert not np.allclose(measure(tiny.context(moments=other)).values, measure(tiny.context()).values)
