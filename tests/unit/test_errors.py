import copy
import pickle

import pytest

from datamill.errors import DatamillError, ExitCode, Issue, MissingDependencyError, PlanError, nearest
from datamill.services.llm import faults
from datamill.workflows.runner import InterruptedRunError

FULL = Issue("DM-X-001", "bad", "warning", "s", "params.a", "f.yaml", 3, "good", "goood", "do it", {"k": 1})
ERRORS = [
    DatamillError("DM-X-002", "plain", step="s", fix="f", context={"a": [1]}),
    DatamillError("DM-X-003", "several", exit_code=ExitCode.USAGE, issues=[FULL, Issue("DM-X-004", "second")]),
    PlanError([FULL, Issue("DM-PLAN-001", "x")]),
    MissingDependencyError("torch", "training", "train"),
    InterruptedRunError("near"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("carry", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy], ids=["pickle", "copy"])
def test_errors_cross_a_process_border_whole(error: DatamillError, carry: object) -> None:
    assert callable(carry)
    other = carry(error)
    assert type(other) is type(error)
    assert (other.code, other.exit_code, other.issues, str(other)) == (
        error.code,
        error.exit_code,
        error.issues,
        str(error),
    )


def test_every_kind_of_error_in_the_source_survives_pickling() -> None:
    """A subclass with its own constructor breaks in a worker unless it says how it is rebuilt."""
    import datamill.agents.conversation
    import datamill.operators.registry
    import datamill.services.storage.units

    assert faults is not None
    datamill.operators.registry.catalogue()
    kinds, waiting = set(), [DatamillError]
    while waiting:
        kind = waiting.pop()
        kinds.add(kind)
        waiting.extend(kind.__subclasses__())
    for kind in kinds:
        made = kind.__new__(kind)
        own = "__init__" in kind.__dict__ and kind is not DatamillError
        assert not own or "__reduce__" in kind.__dict__, f"{made.__class__.__name__} needs __reduce__"


def test_a_finding_renders_place_expectation_match_and_fix() -> None:
    assert FULL.render() == "f.yaml:3: DM-X-001 [s.params.a] bad (expected good); did you mean `goood`?\n  fix: do it"
    assert Issue("C", "m", file="f").render() == "f: C m"
    assert Issue("C", "m").to_dict() == {"code": "C", "message": "m", "severity": "error"}
    assert FULL.to_dict()["context"] == {"k": 1}
    assert Issue(**FULL.to_dict()) == FULL


def test_a_plan_error_leads_with_its_first_finding() -> None:
    error = ERRORS[2]
    assert (error.code, error.exit_code) == ("DM-X-001", ExitCode.INVALID)
    assert str(error).count("DM-") == 2


def test_exit_codes_are_the_published_ones() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0, "STEP_FAILED": 1, "USAGE": 2, "INVALID": 3, "NEEDS_APPROVAL": 4, "GATE_FAILED": 5,
        "MISSING_DEPENDENCY": 6, "BUDGET_EXCEEDED": 7, "INTERRUPTED": 130,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "known", "match"),
    [
        ("threshhold", ["threshold", "unit"], "threshold"), ("THRESHOLD", ["threshold"], "threshold"),
        ("xyz", ["threshold"], None), ("a", [], None), ("minhash", ["dedup.minhash", "dedup.exact"], "dedup.minhash"),
    ],
)  # fmt: skip
def test_nearest(word: str, known: list[str], match: str | None) -> None:
    assert nearest(word, known) == match
