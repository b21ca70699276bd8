"""Self-check of worked solutions: annotations, final numbers, and the whole of GSM8K train with planted errors."""

import json
import random
import time
from pathlib import Path

import pytest

from datamill.operators.math.extraction import after_hash, boxed, extract_answer, last_number
from datamill.operators.math.solutions import check_annotation, check_solution, is_supported

GSM8K = Path(__file__).parents[4].parent / "shared" / "data" / "gsm8k" / "train.jsonl"
CONTRADICTORY = {356, 786, 1154, 2770, 4796, 7182}
"""Rows of GSM8K train whose own working arrives at another number than the one after ####."""


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("48/2=24", True), ("48/2=25", False), ("10/3=3.33", True), (".5*10=5", True), ("5*.2=$1", True), ("2+2=4=4", True),
        ("2+2=4=5", False), ("50*20%=10", True), ("x+1=3", None), ("no equation", None), ("1/0=3", None),
    ],
)  # fmt: skip
def test_annotations(text: str, right: bool | None) -> None:
    assert check_annotation(text) is right


@pytest.mark.parametrize(
    ("final", "working", "supported"),
    [
        ("72", "48+24 = <<48+24=72>>72 clips", True),
        ("73", "48+24 = <<48+24=72>>72 clips", False),
        ("25", "a share of <<1/4=.25>>.25", True),
        ("4", "so <<18/5=3.6>>3.6 buses", True),
        ("1,200", "<<600*2=1200>>1200 in all", True),
        ("33", "13 marbles + 4 marbles + 16 marbles = 45 marbles", True),
        ("34", "13 marbles + 4 marbles + 16 marbles = 45 marbles", False),
        ("100,000", "that is $80 000 + $16 000 + $4 000 = $100 000.", True),
        ("5", "no number at all", None),
        ("a pony", "1+1=2", None),
    ],
)
def test_final_numbers(final: str, working: str, supported: bool | None) -> None:
    assert is_supported(final, working) is supported


def test_findings_name_what_is_wrong() -> None:
    wrong = check_solution("It is <<2*3=7>>7.\n#### 7")
    assert (wrong.reason, wrong.detail) == ("wrong_annotation", "<<2*3=7>>")
    final = check_solution("It is <<2*3=6>>6.\n#### 8")
    assert (final.reason, final.checked) == ("wrong_final", 1)
    assert check_solution("It is <<2*3=6>>6.\n#### 6").checked == 2
    assert check_solution("It is <<2*3=6>>6, so \\boxed{6}").checked == 2
    assert check_solution("Nothing to check.").checked == 0


def test_answers_are_found_where_people_put_them() -> None:
    assert after_hash("a\n#### 1\nb\n#### 2 apples") == "2 apples"
    assert boxed("so \\boxed{\\frac{1}{2}} and") == "\\frac{1}{2}"
    assert boxed("\\boxed{1") is None
    assert last_number("3 of <<1+1=2>>2 and 1,200.50 left") == "1,200.50"
    assert extract_answer("Work.\nThe answer is 18.") == "18"
    assert extract_answer("x + 1") == "x + 1"
    assert extract_answer("one line\nthen 7 more") == "7"
    assert extract_answer("no digits\nhere") is None
    assert extract_answer("5 then \\boxed{6}", "hash") is None
    assert extract_answer("5 then \\boxed{6}", "last_number") == "6"


@pytest.mark.skipif(not GSM8K.is_file(), reason="needs ../shared")
def test_gsm8k_train_loses_no_clean_row_and_planted_finals_are_found() -> None:
    answers = [json.loads(line)["answer"] for line in GSM8K.read_text().splitlines()]
    began = time.perf_counter()
    findings = [check_solution(answer) for answer in answers]
    assert time.perf_counter() - began < 15
    assert {index for index, finding in enumerate(findings) if finding.reason} == CONTRADICTORY
    assert all(finding.checked for finding in findings if not finding.reason)
    rng = random.Random(5)
    chosen = rng.sample(sorted(set(range(len(answers))) - CONTRADICTORY), 500)
    for change in (lambda n: n + rng.randint(1, 3), lambda n: n - rng.randint(1, 10), lambda n: n * 10 + 7):
        found = 0
        for index in chosen:
            working, _, final = answers[index].rpartition("#### ")
            planted = f"{working}#### {change(int(final.replace(',', '')))}"
            found += check_solution(planted).reason == "wrong_final"
        assert found / len(chosen) >= 0.95


@pytest.mark.skipif(not GSM8K.is_file(), reason="needs ../shared")
def test_planted_wrong_annotations_are_all_found() -> None:
    rng = random.Random(6)
    answers = [json.loads(line)["answer"] for line in GSM8K.read_text().splitlines()]
    for answer in rng.sample([answer for answer in answers if "=12>>" in answer], 100):
        assert check_solution(answer.replace("=12>>", "=14>>", 1)).reason == "wrong_annotation"
