"""The data card: everything it promises is in it, text from data stays inert, licences are found."""

from pathlib import Path

from datamill.workflows.card import NO_LICENCE, Card, CardColumn, CardSource, CardStep, find_licences, render_card

CARD = Card(
    name="clean",
    rows=1234,
    command="datamill run plan.yaml",
    plan_digest="9c41d2",
    data_sha256="ab" * 32,
    description="Clean *set*",
    request="english <script>alert(1)</script> | only",
    seed=17,
    columns=[CardColumn("te|xt", "string", "text", 0.25)],
    sources=[CardSource("data/web.jsonl", 5000, "cd" * 32)],
    licences=["in the data: CC BY 4.0"],
    pii={"phone": 0, "email": 31},
    steps=[CardStep("near", "dedup.minhash", 5000, 1234, {"near_duplicate": 3700, "other": 66})],
    limits=["English only."],
)


def test_everything_is_said() -> None:
    text = render_card(CARD)
    for part in (
        "rows: `1,234`", "plan: `9c41d2`", "seed: `17`", "`string` | text | 25.0%", "data/web.jsonl | 5,000",
        "CC BY 4.0", "email: 31 found", "phone: none found", "`dedup.minhash` | 5,000 | 1,234", "English only.", "datamill run plan.yaml",
    ):  # fmt: skip
        assert part in text, part
    assert text.index("near\\_duplicate 3,700") < text.index("other 66")


def test_hostile_text_is_inert() -> None:
    text = render_card(CARD)
    assert "<script>" not in text
    assert "te\\|xt" in text
    assert all(line.count("|") in {0, 4, 5, 6} for line in text.replace("\\|", "").split("\n"))


def test_an_empty_card_says_what_is_not_known() -> None:
    text = render_card(Card("x", 0, "cmd", "d", "s"))
    assert NO_LICENCE in text
    assert "Not looked for." in text
    assert "seed" not in text


def test_licences_from_files_and_values(tmp_path: Path) -> None:
    (tmp_path / "LICENSE.txt").write_text("Apache License\nVersion 2.0")
    (tmp_path / "COPYING").write_text("our own terms")
    (tmp_path / "data.jsonl").write_text("{}")
    found = find_licences([tmp_path / "data.jsonl", tmp_path / "more.jsonl"], ["MIT", "", "MIT"])
    assert found == ("COPYING: not recognised, read it", "LICENSE.txt: Apache-2.0", "in the data: MIT")
    assert find_licences([tmp_path / "absent" / "x"]) == ()
