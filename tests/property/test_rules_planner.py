"""The rules planner on any text: it never fails, never depends on anything but the text, never leaks a secret."""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from datamill.agents.draft import TOPICS, Draft
from datamill.agents.rules import plan_request
from datamill.agents.rules.capabilities import CAPABILITIES
from datamill.agents.rules.quantities import quantities
from datamill.agents.rules.request import Request
from datamill.operators.registry import catalogue
from datamill.workflows.spec import Workflow

HELDOUT = Path(__file__).parents[1] / "agent" / "data" / "requests_heldout.jsonl"
REQUESTS = [json.loads(line)["request"] for line in HELDOUT.read_text(encoding="utf-8").splitlines()]
PIECES = [word for request in REQUESTS for word in request.replace("，", " ， ").split()]

texts = st.text(st.characters(), max_size=200)
mixtures = st.lists(st.sampled_from(PIECES), min_size=1, max_size=30).map(" ".join)
pairs = st.tuples(st.sampled_from(REQUESTS), st.sampled_from(REQUESTS)).map(". ".join)


def sound(draft: Draft) -> None:
    """What holds for every draft, whatever was asked."""
    assert draft.verdict in {"plan", "clarify", "refuse"}
    assert (draft.verdict == "refuse") == bool(draft.refusals)
    if draft.verdict == "clarify":
        assert any(question.blocking for question in draft.questions)
    assert all(question.topic in TOPICS and question.text for question in draft.questions)
    assert all(m.name in CAPABILITIES or m.name.startswith("train.") for m in draft.missing)
    assert not set(draft.operators) & set(draft.forbidden)
    if draft.workflow is None:
        return
    Workflow.model_validate(draft.workflow)
    known = set(draft.workflow["inputs"])
    for step in draft.workflow["steps"]:
        catalogue()[step["operator"]].params.model_validate(step.get("params", {}))
        assert set(step["needs"]) <= known
        assert step["id"] not in known
        known.add(step["id"])
    assert all(output["from"] in known for output in draft.workflow["outputs"].values())
    inputs = {entry["path"] for entry in draft.workflow["inputs"].values()}
    assert not inputs & {output["path"] for output in draft.workflow["outputs"].values()}
    json.dumps(draft.workflow)


@settings(max_examples=150, deadline=None)
@given(st.one_of(texts, mixtures, pairs))
def test_any_text_gives_a_sound_draft_twice_the_same(text: str) -> None:
    draft = plan_request(text)
    sound(draft)
    assert plan_request(text) == draft


@settings(max_examples=60, deadline=None)
@given(st.one_of(mixtures, texts), st.sampled_from(REQUESTS))
def test_any_text_changes_any_draft_soundly(text: str, request: str) -> None:
    changed = plan_request(text, None, plan_request(request))
    if changed.workflow is not None:
        Workflow.model_validate(changed.workflow)


@settings(max_examples=80, deadline=None)
@given(mixtures, mixtures, st.from_regex(r"\A(?:sk|hf|ghp)[-_][A-Za-z0-9]{12,30}\Z"))
def test_a_secret_never_comes_out(before: str, after: str, secret: str) -> None:
    draft = plan_request(f"{before} {secret} {after}")
    assert draft.verdict == "refuse"
    assert secret not in draft.model_dump_json()


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 10**7), st.sampled_from(["{} rows", "{:,} rows", "take {} rows of a.jsonl"]))
def test_whole_numbers_survive(number: int, frame: str) -> None:
    found = quantities(Request(frame.format(number)))
    assert [q.value for q in found] == [number]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 99))
def test_thresholds_survive_in_every_spelling(hundredths: int) -> None:
    value = hundredths / 100
    spellings = [
        f"near dedup of a.jsonl, threshold {value}",
        f"quase iguais em a.jsonl, limiar {str(value).replace('.', ',')}",
        f"用 MinHash 去重 a.jsonl，阈值 {value}",
        f"near dedup of a.jsonl with similarity {hundredths}%",
    ]
    for text in spellings:
        workflow = plan_request(text).workflow
        assert workflow is not None
        near = next(step for step in workflow["steps"] if step["operator"] == "dedup.minhash")
        assert near["params"]["threshold"] == value, text
