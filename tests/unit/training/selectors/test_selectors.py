"""Selectors are pure functions of tables: budgets, ties, missing scores, bands and memory."""

import json
from typing import Any

import numpy as np
import pytest

from datamill.errors import DatamillError
from datamill.training.contracts import SelectionState, Selector, SignalTable
from datamill.training.registry import build_selector, selectors

NAMES = ("less", "loss", "random")


def table(key: Any, values: Any, ids: Any = None) -> Any:
    return SignalTable(key, np.arange(len(values)) if ids is None else np.asarray(ids), np.asarray(values, float))


def tables(values: Any, ids: Any = None) -> Any:
    return {
        "loss": table("loss", values, ids),
        "grad_similarity": table("grad_similarity", np.asarray(values, float)[:, None], ids),
    }


def choose(
    selector: Any, values: Any, budget: Any, seed: Any = 0, ids: Any = None, candidates: Any = None, **state: Any
) -> Any:
    found = tables(values, ids)
    pool = found["loss"].ids if candidates is None else np.asarray(candidates)
    return selector.select(found, budget, SelectionState(pool, **state), np.random.default_rng(seed))


@pytest.mark.parametrize("name", NAMES)
class TestEverySelector:
    def test_it_keeps_the_contract(self, name: Any) -> None:
        assert isinstance(build_selector(name), Selector)

    def test_the_budget_is_kept_without_repeats(self, name: Any) -> None:
        plan = choose(build_selector(name), np.linspace(0, 1, 20), 7)
        assert plan.ids.dtype == np.int64
        assert len(set(plan.ids.tolist())) == 7
        assert plan.metadata["warnings"] == [] or name == "less"

    def test_asking_for_more_than_there_is_gives_all_once_and_says_so(self, name: Any) -> None:
        plan = choose(build_selector(name), [0.3, 0.1, 0.2], 5)
        assert sorted(plan.ids.tolist()) == [0, 1, 2]
        assert any("5 rows were asked for and only 3 are there" in text for text in plan.metadata["warnings"])

    def test_only_candidates_are_chosen(self, name: Any) -> None:
        plan = choose(build_selector(name), np.linspace(0, 1, 20), 4, candidates=[3, 5, 11, 13, 17])
        assert set(plan.ids.tolist()) <= {3, 5, 11, 13, 17}
        assert set(plan.scores.ids.tolist()) <= {3, 5, 11, 13, 17}

    def test_the_order_of_rows_and_candidates_does_not_matter(self, name: Any) -> None:
        values = np.random.default_rng(1).normal(size=30)
        ids = np.random.default_rng(2).permutation(30)
        straight = choose(build_selector(name), values, 9)
        shuffled = choose(build_selector(name), values[ids], 9, ids=ids, candidates=ids[::-1])
        assert straight.ids.tolist() == shuffled.ids.tolist()

    def test_the_global_generator_is_neither_read_nor_moved(self, name: Any) -> None:
        np.random.seed(1)
        before = np.random.get_state()[1].tobytes()
        first = choose(build_selector(name), np.linspace(0, 1, 20), 7)
        assert np.random.get_state()[1].tobytes() == before
        np.random.seed(2)
        assert choose(build_selector(name), np.linspace(0, 1, 20), 7).ids.tolist() == first.ids.tolist()

    def test_metadata_is_json(self, name: Any) -> None:
        plan = choose(build_selector(name), np.linspace(0, 1, 20), 7)
        assert json.loads(json.dumps(dict(plan.metadata)))["selector"] == name

    @pytest.mark.parametrize(("budget", "candidates"), [(0, [0, 1]), (2, []), (2, [0, 0, 1])])
    def test_impossible_requests_are_refused(self, name: Any, budget: Any, candidates: Any) -> None:
        with pytest.raises(DatamillError, match="DM-SIG-004"):
            choose(build_selector(name), [0.1, 0.2], budget, candidates=np.array(candidates, dtype=np.int64))

    def test_a_resumed_selector_decides_the_same(self, name: Any) -> None:
        params = {"checkpoints": 2} if name == "less" else {}
        first, second = build_selector(name, params), build_selector(name, params)
        values = np.random.default_rng(3).normal(size=(2, 12))
        choose(first, values[0], 4)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        assert choose(first, values[1], 4).ids.tolist() == choose(second, values[1], 4).ids.tolist()


@pytest.mark.parametrize("name", ["less", "loss"])
class TestScores:
    def test_a_row_without_a_score_is_refused(self, name: Any) -> None:
        with pytest.raises(DatamillError, match=r"DM-SIG-002.*1 candidate rows have no value \(ids 9\)"):
            choose(build_selector(name), [0.1, 0.2, 0.3], 2, candidates=[0, 1, 9])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_a_score_that_is_not_finite_is_refused(self, name: Any, bad: Any) -> None:
        with pytest.raises(DatamillError, match=r"not finite \(ids 1\)"):
            choose(build_selector(name), [0.1, bad, 0.3], 2)

    def test_a_missing_table_is_named(self, name: Any) -> None:
        state = SelectionState(np.arange(3))
        with pytest.raises(DatamillError, match=r"DM-SIG-003.*no signals"):
            build_selector(name).select({}, 2, state, np.random.default_rng(0))

    def test_every_candidate_has_a_score_in_the_plan(self, name: Any) -> None:
        plan = choose(build_selector(name), np.linspace(0, 1, 20), 3)
        np.testing.assert_array_equal(plan.scores.at(np.arange(20)), np.linspace(0, 1, 20))


class TestRandom:
    def test_it_is_uniform(self) -> None:
        counts = np.zeros(10)
        for seed in range(3000):
            counts[choose(build_selector("random"), np.zeros(10), 3, seed=seed).ids] += 1
        expected = 900
        assert ((counts - expected) ** 2 / expected).sum() < 27.9  # chi-square, 9 degrees, p = .001

    def test_it_measures_nothing(self) -> None:
        assert build_selector("random").signals() == ()
        assert len(choose(build_selector("random"), [1.0, 2.0], 1).scores) == 0


class TestLoss:
    VALUES = np.arange(100.0)

    @pytest.mark.parametrize(("focus", "band"), [("low", (0, 33)), ("medium", (33, 66)), ("high", (66, 100))])
    def test_the_band_in_focus_has_its_weight(self, focus: Any, band: Any) -> None:
        weights = build_selector("loss", {"focus": focus, "focus_weight": 5}).weights(self.VALUES)
        inside = np.zeros(100, bool)
        inside[slice(*band)] = True
        assert (weights == np.where(inside, 5, 1)).all()

    def test_temperature_flattens_the_odds(self) -> None:
        hot = build_selector("loss", {"focus_weight": 16, "temperature": 2}).weights(self.VALUES)
        assert hot.max() == pytest.approx(4)

    def test_single_draws_follow_the_weights(self) -> None:
        selector = build_selector("loss", {"focus": "high", "focus_weight": 5})
        hits = sum(int(choose(selector, self.VALUES, 1, seed=seed).ids[0]) >= 66 for seed in range(3000))
        expected = 34 * 5 / (34 * 5 + 66)
        assert abs(hits / 3000 - expected) < 4 * np.sqrt(expected * (1 - expected) / 3000)
        share = choose(selector, self.VALUES, 1).metadata["expected_share_in_focus"]
        assert share == pytest.approx(expected)

    def test_pairs_follow_sequential_draws_without_replacement(self) -> None:
        """Two of three rows with odds 4:1:1; P(row 0 left out) = 2 * 1/6 * 1/5."""
        selector = build_selector("loss", {"focus": "high", "focus_weight": 4, "quantiles": (0.3, 0.6)})
        out = sum(0 not in choose(selector, [9.0, 1.0, 2.0], 2, seed=seed).ids for seed in range(4000))
        expected = 2 * (1 / 6) * (1 / 5)
        assert abs(out / 4000 - expected) < 4 * np.sqrt(expected * (1 - expected) / 4000)

    def test_equal_losses_fall_into_one_band(self) -> None:
        weights = build_selector("loss").weights(np.full(10, 2.5))
        assert (weights == 1).all()

    @pytest.mark.parametrize(
        "params",
        [
            {"quantiles": (0.6, 0.3)},
            {"quantiles": (0.0, 0.5)},
            {"focus_weight": 0.5},
            {"temperature": 0},
            {"focus": "middle"},
        ],
    )
    def test_senseless_parameters_are_refused(self, params: Any) -> None:
        with pytest.raises(DatamillError, match="DM-SIG-011"):
            build_selector("loss", params)


class TestLess:
    def test_the_best_rows_are_taken_and_ties_go_to_the_smaller_id(self) -> None:
        plan = choose(build_selector("less"), [0.1, 0.5, 0.5, 0.9, 0.5], 2, step=100)
        assert sorted(plan.ids.tolist()) == [1, 3]
        assert plan.metadata == {"selector": "less", "checkpoints": 1, "lowest_chosen_score": 0.5, "warnings": []}

    def test_the_order_is_not_that_of_the_scores(self) -> None:
        plan = choose(build_selector("less"), np.linspace(0, 1, 50), 30)
        assert plan.ids.tolist() != sorted(plan.ids.tolist(), reverse=True)
        assert sorted(plan.ids.tolist()) == list(range(20, 50))

    def test_the_score_is_the_best_subtask_not_the_mean(self) -> None:
        selector = build_selector("less")
        signals = {"grad_similarity": table("grad_similarity", [[0.9, -0.9], [0.4, 0.4], [0.1, 0.1]])}
        plan = selector.select(signals, 1, SelectionState(np.arange(3)), np.random.default_rng(0))
        assert plan.ids.tolist() == [0]
        assert plan.scores.values.tolist() == [0.9, 0.4, 0.1]

    def test_checkpoints_are_weighted_by_learning_rate_before_the_maximum(self) -> None:
        selector = build_selector("less", {"checkpoints": 2})
        first = {"grad_similarity": table("grad_similarity", [[1.0, 0.0], [0.2, 0.2]])}
        second = {"grad_similarity": table("grad_similarity", [[0.0, 1.0], [0.7, 0.7]])}
        rng = np.random.default_rng(0)
        selector.select(first, 1, SelectionState(np.arange(2), learning_rate=3e-5), rng)
        plan = selector.select(second, 1, SelectionState(np.arange(2), update=1, learning_rate=1e-5), rng)
        assert plan.scores.values == pytest.approx([0.75, 0.75 * 0.2 + 0.25 * 0.7])

    def test_only_the_last_checkpoints_count(self) -> None:
        selector = build_selector("less", {"checkpoints": 2})
        for value in (0.9, 0.1, 0.3):
            plan = choose(selector, [value, 0.0], 1)
        assert plan.scores.values[0] == pytest.approx(0.2)
        assert choose(build_selector("less"), [0.3, 0.0], 1).scores.values[0] == pytest.approx(0.3)

    def test_a_candidate_not_scored_at_an_earlier_checkpoint_is_refused(self) -> None:
        selector = build_selector("less", {"checkpoints": 2})
        choose(selector, [0.1, 0.2], 1)
        with pytest.raises(DatamillError, match=r"DM-SIG-002.*ids 2"):
            choose(selector, [0.1, 0.2, 0.3], 1)

    def test_zero_rates_count_alike(self) -> None:
        selector = build_selector("less", {"checkpoints": 2})
        choose(selector, [0.2, 0.0], 1, learning_rate=0.0)
        assert choose(selector, [0.4, 0.0], 1, learning_rate=0.0).scores.values[0] == pytest.approx(0.3)

    def test_noisy_moments_are_mentioned(self) -> None:
        early = choose(build_selector("less"), [0.1, 0.2], 1, step=4)
        assert "after 4 optimizer steps" in early.metadata["warnings"][0]
        plain = choose(build_selector("less", {"gradient_type": "sgd"}), [0.1, 0.2], 1, step=4)
        assert plain.metadata["warnings"] == []

    def test_the_request_carries_what_changes_a_score(self) -> None:
        (request,) = build_selector("less", {"proj_dim": 64, "seed": 7, "projection": "rademacher"}).signals()
        assert request.key == "grad_similarity"
        assert request.params == {
            "gradient_type": "adam", "projection": "rademacher", "proj_dim": 64, "seed": 7, "compat": "none",
        }  # fmt: skip


def test_the_catalogue_lists_them_with_a_sentence_and_described_parameters() -> None:
    assert set(NAMES) <= set(selectors())
    for declaration in selectors().values():
        assert declaration.summary
        assert all(info.description for info in declaration.params.model_fields.values())
