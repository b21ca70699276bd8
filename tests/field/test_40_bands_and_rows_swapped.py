"""Case 40: swapped bands and rows are seen in the plan, before hours are lost."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from datamill.operators.dedup.minhash import MinHashParams
from datamill.operators.registry import find
from datamill.services.minhash.settings import detection_probability

CASE = Path(__file__).parents[2].parent / "shared" / "cases" / "40-bands-and-rows-swapped"
pytestmark = pytest.mark.skipif(not CASE.exists(), reason="../shared/cases is not there")


def settings(name: str) -> dict[str, Any]:
    return dict(YAML(typ="safe").load((CASE / "settings.yaml").read_text())[name])


@pytest.mark.parametrize(("name", "expected"), [("case_1", 2.0e-5), ("case_2", 0.966)])
def test_the_curve(name: str, expected: float) -> None:
    given = settings(name)
    assert detection_probability(given["threshold"], given["bands"], given["rows"]) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("verify", ["jaccard", "none"])
@pytest.mark.parametrize(("name", "shown", "warned"), [("case_1", "2.0e-5", True), ("case_2", "0.97", False)])
def test_the_plan_shows_it_and_warns_below_one_half(name: str, shown: str, warned: bool, verify: str) -> None:
    findings = find("dedup.minhash").check(MinHashParams(**settings(name), verify=verify))
    severities = [severity for severity, _, _ in findings]
    assert severities == (["note", "warning"] if warned else ["note"])
    assert f"= {shown} at similarity 0.8" in findings[0][2]
    if warned:
        assert "may have been swapped" in findings[1][2]
