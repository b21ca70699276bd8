"""Grades a planner on requests in people's words, as `nl_requests.md` says: five points a request, all must hold.

    python benchmarks/nl_requests.py FILE --planner rules
    python benchmarks/nl_requests.py FILE --planner llm -m MODEL --json

The file speaks of generic capabilities (`minhash_dedup.threshold`); the tables of `vocabulary` below map them to
operators once. A capability counts as covered when a step of the draft has it, or when the draft names it as missing;
requests that are right only thanks to the latter are listed apart. Numbers must be equal; a parameter whose expected
value is a sentence is reported for a human reader and not scored. Prints a table ending in `right k / n`.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from datamill.agents.draft import Draft

sys.path.insert(0, str(Path(__file__).parent))

from nl_requests_params import Sought, find_values, is_sentence, same
from nl_requests_vocabulary import refusal_kinds, topics_of

POINTS = ("operators", "order", "parameters", "training", "question")
Planner = Callable[[str], Draft]


@dataclass
class Grade:
    """Result of one request.

    Attributes:
        points: verdict of each of the five points.
        reasons: why points were lost, and fatal findings.
        for_a_human: expected sentences that were not scored.
        by_missing: capabilities covered only by naming them as missing.
    """

    id: str
    kind: str
    language: str
    verdict: str
    points: dict[str, bool] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    for_a_human: list[str] = field(default_factory=list)
    by_missing: list[str] = field(default_factory=list)
    fatal: bool = False

    @property
    def right(self) -> bool:
        """Whether all five points hold and nothing is fatal."""
        return not self.fatal and all(self.points.get(point, False) for point in POINTS)


def grade(case: dict[str, Any], draft: Draft) -> Grade:
    """Grade a draft against one case of the file."""
    expect = case["expect"]
    result = Grade(case["id"], case["kind"], case.get("lang", ""), draft.verdict)
    sought = Sought(draft)
    _check_honesty(draft, result)
    result.points["operators"] = _operators(expect, case["kind"], sought, result)
    result.points["order"] = _order(expect.get("order", []), sought, result)
    result.points["parameters"] = _parameters(expect.get("params", {}), sought, result)
    result.points["training"] = _training(expect, sought, result)
    result.points["question"] = _question(expect, case["kind"], draft, result)
    return result


def _check_honesty(draft: Draft, result: Grade) -> None:
    """An operator that does not exist, or one the request forbade, fails the whole request."""
    from datamill.operators.registry import catalogue

    for operator in draft.operators:
        if operator not in catalogue():
            result.fatal = True
            result.reasons.append(f"invented operator {operator}")
        if operator in draft.forbidden:
            result.fatal = True
            result.reasons.append(f"forbidden operator {operator}")


def _operators(expect: dict[str, Any], kind: str, sought: Sought, result: Grade) -> bool:
    shown = sought.draft.workflow is not None or bool(sought.draft.missing)
    ok = True
    required = expect.get("ops_all", []) if shown or kind == "plan" else []
    if kind == "refuse" and sought.draft.workflow is None:
        required = []
    for capability in required:
        ok &= _covered(capability, sought, result)
    for choice in expect.get("ops_any", []) if shown or kind == "plan" else []:
        if not any(_covered(capability, sought, result, quiet=True) for capability in choice):
            ok = False
            result.reasons.append(f"none of {choice}")
    for capability in expect.get("ops_none", []):
        if sought.steps(capability) or (capability == "load" and sought.draft.workflow is not None):
            ok = False
            result.fatal = True
            result.reasons.append(f"must not have {capability}")
    return ok


def _covered(capability: str, sought: Sought, result: Grade, quiet: bool = False) -> bool:
    if sought.present(capability):
        return True
    if sought.named_missing(capability):
        result.by_missing.append(capability)
        return True
    if not quiet:
        result.reasons.append(f"lacks {capability}")
    return False


def _order(pairs: Sequence[Sequence[str]], sought: Sought, result: Grade) -> bool:
    wrong = [pair for pair in pairs if not sought.path(pair[0], pair[1])]
    result.reasons += [f"no path {before} -> {after}" for before, after in wrong]
    return not wrong


def _parameters(params: dict[str, Any], sought: Sought, result: Grade) -> bool:
    ok = True
    for name, wanted in params.items():
        if is_sentence(wanted):
            result.for_a_human.append(f"{name}: {wanted}")
            continue
        found = find_values(name, sought)
        if not any(same(wanted, value, name) for value in found):
            ok = False
            result.reasons.append(f"{name}: wanted {wanted!r}, found {found!r}")
    return ok


def _training(expect: dict[str, Any], sought: Sought, result: Grade) -> bool:
    wanted = expect.get("train")
    if wanted is None:
        if sought.trains() and not sought.training_expected and "train" not in expect.get("ops_all", []):
            result.reasons.append("trains though not asked to")
            return False
        return True
    have = sought.training()
    if have is None:
        result.reasons.append("no training part")
        return False
    ok = True
    for name, value in wanted.items():
        if is_sentence(value) and name not in {"target", "model"}:
            result.for_a_human.append(f"train.{name}: {value}")
        elif not (
            same(value, have.get(name), name)
            or (name == "ratio" and value in have.get("ratios", ()))
            or (name == "finetuning" and value == "lora" and have.get(name) == "qlora")
        ):
            ok = False
            result.reasons.append(f"train.{name}: wanted {value!r}, found {have.get(name)!r}")
    return ok


def _question(expect: dict[str, Any], kind: str, draft: Draft, result: Grade) -> bool:
    if kind == "plan":
        if draft.verdict == "refuse" or (draft.workflow is None and not draft.missing):
            result.reasons.append(f"no plan, verdict {draft.verdict}")
            return False
        return True
    if kind == "clarify":
        return _asks(expect.get("clarify", []), draft, result)
    if draft.verdict != "refuse":
        result.fatal = True
        result.reasons.append(f"not declined, verdict {draft.verdict}")
        return False
    ok = True
    have = {refusal.kind for refusal in draft.refusals}
    for sentence in expect.get("refuse", []):
        kinds = refusal_kinds(sentence)
        if not kinds:
            result.for_a_human.append(f"refuse: {sentence}")
        elif not kinds <= have:
            ok = False
            result.reasons.append(f"declines {sorted(have)}, not {sorted(kinds - have)}")
    return ok


def _asks(sentences: Sequence[str], draft: Draft, result: Grade) -> bool:
    if draft.verdict == "refuse" or not draft.questions or not any(question.blocking for question in draft.questions):
        result.reasons.append(f"asks nothing, verdict {draft.verdict}")
        return False
    have = {question.topic for question in draft.questions} | ({"method", "capability"} if draft.missing else set())
    ok = True
    for sentence in sentences:
        topics = topics_of(sentence)
        if not topics:
            result.for_a_human.append(f"clarify: {sentence}")
        for alternatives in topics:
            if not alternatives & have:
                ok = False
                result.reasons.append(f"does not ask about {'/'.join(sorted(alternatives))} ({sentence})")
    return ok


def planner_of(name: str, model: str | None) -> Planner:
    """The planner called `name`.

    Raises:
        SystemExit: when it is not there.
    """
    from datamill.agents.planners import make_planner

    planner = make_planner("rules" if name == "rules" else model, os.environ)
    if name == "llm" and planner.name == "rules":
        raise SystemExit("the llm planner needs OPENAI_API_KEY or OPENAI_BASE_URL, and -m MODEL")
    return lambda text: planner.draft(text, None, None)


def table(grades: Sequence[Grade], verbose: bool) -> str:
    """Rows of marks, then the lists of what needs a reader, then `right k / n`."""
    lines = [
        f"{'id':10} {'kind':8} {'lang':4} {'verdict':8} " + " ".join(f"{point[:9]:9}" for point in POINTS) + " right"
    ]
    for item in grades:
        marks = " ".join(f"{'yes' if item.points.get(point) else 'NO':9}" for point in POINTS)
        lines.append(
            f"{item.id:10} {item.kind:8} {item.language:4} {item.verdict:8} {marks} {'yes' if item.right else 'NO'}"
        )
        if verbose or not item.right:
            lines += [f"    - {reason}" for reason in item.reasons]
    apart = [item for item in grades if item.right and item.by_missing]
    lines += ["", f"right by naming what is missing ({len(apart)}):"]
    lines += [f"    {item.id}: {', '.join(dict.fromkeys(item.by_missing))}" for item in apart]
    lines += ["", "not scored, for a human reader:"]
    lines += [f"    {item.id}: {sentence}" for item in grades for sentence in item.for_a_human]
    for kind in ("plan", "clarify", "refuse"):
        of_kind = [item for item in grades if item.kind == kind]
        if of_kind:
            lines.append(f"{kind:8} {sum(item.right for item in of_kind)} / {len(of_kind)}")
    right = sum(item.right for item in grades)
    lines.append(f"right {right} / {len(grades)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON lines of requests with what a right workflow has")
    parser.add_argument("--planner", choices=("rules", "llm"), default="rules")
    parser.add_argument("-m", "--model", help="model of the llm planner")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("-v", "--verbose", action="store_true", help="reasons also for what is right")
    options = parser.parse_args(arguments)
    planner = planner_of(options.planner, options.model)
    cases = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines() if line.strip()]
    grades = [grade(case, planner(case["request"])) for case in cases]
    if options.json:
        right = sum(item.right for item in grades)
        print(
            json.dumps(
                {"right": right, "n": len(grades), "grades": [asdict(g) | {"right": g.right} for g in grades]},
                ensure_ascii=False,
            )
        )
    else:
        print(table(grades, options.verbose))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
