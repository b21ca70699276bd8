"""pii.redact: finds with check digits, negatives, modes, several columns, conversations and JSON text."""

import time
from typing import Any

import orjson
import pyarrow as pa
import pytest

from datamill.operators.declaration import Context, registered
from datamill.operators.pii.patterns import is_card, is_cn_id, is_cpf, luhn
from datamill.operators.pii.redact import ENTITIES, RedactParams, redact
from datamill.operators.pii.redaction import find, redact_text, replacement
from datamill.services.engines.protocol import Outcome

CTX = Context(step="pii", seed=7)


def batch(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values())))
    system = {
        "_id": [f"{i:032x}" for i in range(size)],
        "_ord": list(range(size)),
        "_src": [f"f:{i}" for i in range(size)],
    }
    return pa.table({**system, **columns})


def run(table: pa.Table, **params: Any) -> Outcome:
    return redact(table, RedactParams(**params), CTX)


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("write to ana.b+c@ex-ample.co.uk.", "email", "ana.b+c@ex-ample.co.uk"),
        ("我的邮箱是foo@bar.com和", "email", "foo@bar.com"),
        ("card 4111 1111 1111 1111 ok", "credit_card", "4111 1111 1111 1111"),
        ("5500-0055-5555-5559", "credit_card", "5500-0055-5555-5559"),
        ("amex 378282246310005.", "credit_card", "378282246310005"),
        ("身份证 11010519491231002X。", "cn_id", "11010519491231002X"),
        ("CPF 529.982.247-25", "cpf", "529.982.247-25"),
        ("cpf 52998224725", "cpf", "52998224725"),
        ("host 8.8.8.8 answers", "ip", "8.8.8.8"),
        ("from 2001:db8::ff00:42:8329", "ip", "2001:db8::ff00:42:8329"),
        ("手机13912345678，", "phone", "13912345678"),
        ("139-1234-5678", "phone", "139-1234-5678"),
        ("+86 139 1234 5678", "phone", "+86 139 1234 5678"),
        ("电话：010-62781234", "phone", "010-62781234"),
        ("ligue +55 (11) 91234-5678 já", "phone", "+55 (11) 91234-5678"),
        ("(11) 91234-5678", "phone", "(11) 91234-5678"),
        ("(415) 555-2671", "phone", "(415) 555-2671"),
        ("415-555-2671", "phone", "415-555-2671"),
        ("London +44 20 7946 0958", "phone", "+44 20 7946 0958"),
        ("tel: 91234567", "phone", "91234567"),
    ],
)
def test_finds_exactly_the_personal_data(text: str, kind: str, found: str) -> None:
    assert [(text[start:end], entity) for start, end, entity in find(text, ENTITIES)] == [(found, kind)]


@pytest.mark.parametrize(
    "text",
    [
        "v1.2.3.4 and version 10.0.0.1", "1.2.3.4.5", "999.999.999.999", "127.0.0.1", "std::vector<int>", "10:30:15",
        "ISBN 978-3-16-148410-0", "9783161484100", "4111111111111112", "0.4111111111111111", "12345678901234567890",
        "529.982.247-26", "111.111.111-11", "11010519491331002X", "110105194912310021", "from 1999-2005",
        "15000000000 years", "$13912345678", "<<500-200-1000=-700>>", "3 +12345678901", "200 300 4000", "2.13912345678",
        "13,912,345,678", "a@b", "@user", "1234567890", "year 2024",
    ],
)  # fmt: skip
def test_look_alikes_are_left_alone(text: str) -> None:
    assert find(text, ENTITIES) == []


def test_check_digits_catch_every_single_digit_error() -> None:
    """Luhn, CPF and GB 11643 all detect any one changed digit; exhaustive over positions and digits."""
    for good, check in (("4539578763621486", is_card), ("52998224725", is_cpf), ("11010519491231002X", is_cn_id)):
        assert check(good)
        for position, character in enumerate(good):
            for digit in "0123456789":
                if digit != character:
                    changed = good[:position] + digit + good[position + 1 :]
                    assert not check(changed) or (check is is_card and not luhn(changed)), changed


def test_luhn_reference() -> None:
    assert luhn("79927398713")
    assert not any(luhn(f"7992739871{digit}") for digit in "012456789")


def test_replace_counts_over_several_columns_and_keeps_every_row() -> None:
    table = batch(pergunta=["meu cpf 529.982.247-25", None, "nada"], resposta=["a@b.com e c@d.org", "x@y.zz", "ok"])
    outcome = run(table, columns=("pergunta", "resposta"))
    assert outcome.rows.num_rows == 3
    assert outcome.fates.num_rows == 0
    assert outcome.rows["pergunta"].to_pylist() == ["meu cpf [CPF]", None, "nada"]
    assert outcome.rows["resposta"].to_pylist() == ["[EMAIL] e [EMAIL]", "[EMAIL]", "ok"]
    counts = outcome.rows["pii_counts"].to_pylist()
    assert [(row["cpf"], row["email"], row["phone"]) for row in counts] == [(1, 2, 0), (0, 1, 0), (0, 0, 0)]


def test_mask_keeps_the_shape() -> None:
    outcome = run(batch(text=["call (415) 555-2671 or a.b@c.de"]), mode="mask")
    assert outcome.rows["text"].to_pylist() == ["call (***) ***-**** or *.*@*.**"]


def test_pseudonyms_are_stable_keyed_and_blind_to_spelling() -> None:
    table = batch(text=["139-1234-5678", "13912345678", "13912345679", "A@B.com", "a@b.com"])
    first = run(table, mode="pseudonymise", key="k").rows["text"].to_pylist()
    assert first == run(table, mode="pseudonymise", key="k").rows["text"].to_pylist()
    assert first[0] == first[1] != first[2]
    assert first[3] == first[4]
    assert first != run(table, mode="pseudonymise", key="other").rows["text"].to_pylist()
    assert all(text.startswith(("[PHONE_", "[EMAIL_")) for text in first)


def test_drop_lets_rows_go_with_counts_and_leaves_the_rest_untouched() -> None:
    outcome = run(batch(text=["mail a@b.com, c@d.com", "clean"]), mode="drop")
    assert outcome.rows["text"].to_pylist() == ["clean"]
    fate = outcome.fates.to_pylist()[0]
    assert (fate["reason"], fate["value"], fate["detail"]) == ("pii_found", 2.0, "email 2")


def test_only_the_entities_asked_for() -> None:
    outcome = run(batch(text=["a@b.com 8.8.8.8"]), entities=("email",))
    assert outcome.rows["text"].to_pylist() == ["[EMAIL] 8.8.8.8"]
    assert outcome.rows["pii_counts"].to_pylist() == [{"email": 1}]


def test_conversations_and_json_text_are_redacted_inside() -> None:
    messages = [[{"role": "user", "content": "我的手机13912345678"}]]
    field = pa.field("raw", pa.string(), metadata={b"datamill.dtype": b"json"})
    raw = pa.array([orjson.dumps({"phone": 13912345678, "n": 5, "ok": True, "to": ["a@b.com"]}).decode()])
    table = batch(messages=messages).append_column(field, raw)
    outcome = run(table, columns=("messages", "raw"))
    assert outcome.rows["messages"].to_pylist() == [[{"role": "user", "content": "我的手机[PHONE]"}]]
    assert orjson.loads(outcome.rows["raw"][0].as_py()) == {"phone": "[PHONE]", "n": 5, "ok": True, "to": ["[EMAIL]"]}
    assert outcome.rows.schema.field("raw").metadata == field.metadata


def test_null_policies() -> None:
    outcome = run(batch(text=pa.array([None, "a@b.com"])), on_null="drop")
    assert outcome.fates["reason"].to_pylist() == ["null_text"]
    assert outcome.rows["text"].to_pylist() == ["[EMAIL]"]


def test_an_empty_batch_has_the_declared_schema() -> None:
    full, empty = run(batch(text=["a@b.com"])), run(batch(text=["x"]).slice(0, 0))
    assert full.rows.schema == empty.rows.schema
    written = registered()["pii.redact"].writes(RedactParams(), {})
    assert written["pii_counts"].dtype == str(full.rows.schema.field("pii_counts").type)


def test_redacted_text_holds_nothing_more_to_find() -> None:
    text = "a@b.com 4111111111111111 529.982.247-25 11010519491231002X 8.8.8.8 +55 11 91234-5678"
    for mode in ("mask", "replace", "pseudonymise"):
        once, counts = redact_text(text, ENTITIES, replacement(RedactParams(mode=mode), 1))
        assert counts.total() == 6
        assert find(once, ENTITIES) == []


def test_hostile_text_takes_linear_time() -> None:
    hostile = "a" * 300_000 + "1 " + "1" * 300_000 + "a.b" * 50_000 + "@" + "a." * 50_000 + ":" * 50_000 + "(1" * 50_000
    began = time.perf_counter()
    find(hostile, ENTITIES)
    assert time.perf_counter() - began < 5
