"""`pii.redact`: find personal data in text columns and mask, replace or pseudonymise it, or drop the row.

Numbers that carry check digits are verified (cards: Luhn; CPF: modulo 11 twice; Chinese identity numbers: GB 11643
with a real birth date), so an arbitrary long number is left alone. One pass of compiled patterns per column.
"""

from typing import Literal

import pyarrow as pa
from pydantic import Field

from datamill.operators.declaration import (
    TEXT,
    ColumnType,
    Context,
    Effect,
    Need,
    OnNull,
    Params,
    Schema,
    operator,
)
from datamill.operators.outcomes import then, without_nulls
from datamill.services.engines.protocol import Outcome

Entity = Literal["email", "phone", "ip", "credit_card", "cpf", "cn_id"]
ENTITIES: tuple[Entity, ...] = ("email", "credit_card", "cn_id", "cpf", "ip", "phone")


class RedactParams(Params):
    """Parameters of `pii.redact`."""

    columns: tuple[str, ...] = Field(("text",), min_length=1, description="text columns to look through")
    entities: tuple[Entity, ...] = Field(ENTITIES, min_length=1, description="kinds of personal data")
    mode: Literal["mask", "replace", "pseudonymise", "drop"] = Field(
        "replace",
        description="mask: letters and digits become *; replace: [EMAIL]; pseudonymise: [EMAIL_3f9a1c02], the same "
        "for the same value; drop: rows with personal data leave",
    )
    key: str = Field("", description="secret of the pseudonyms, e.g. ${env.NAME}; the step's seed when empty")
    counts_column: str = Field("pii_counts", description="output: number of finds per kind")
    on_null: OnNull = "keep"


def _reads(params: RedactParams) -> list[Need]:
    nullable = params.on_null != "error"
    semantic = (*TEXT, "chat", "preference")
    return [Need(column, semantic=semantic, nullable=nullable, field="params.columns") for column in params.columns]


def counts_type(params: RedactParams) -> pa.DataType:
    """Arrow type of the counts column: one int64 field per kind."""
    return pa.struct([pa.field(entity, pa.int64()) for entity in params.entities])


def _writes(params: RedactParams, schema: Schema) -> Schema:
    return {**schema, params.counts_column: ColumnType(str(counts_type(params)), nullable=False)}


@operator(
    "pii.redact",
    "Masks, replaces or pseudonymises e-mail, phone, IP, card, CPF and Chinese identity numbers, or drops the rows.",
    effect=Effect.FILTER,
    params=RedactParams,
    reads=_reads,
    writes=_writes,
    reference="ISO/IEC 7812-1 (Luhn), Receita Federal CPF, GB 11643-1999, E.164; Dolma (Soldaini 2024)",
    keywords=(
        "pii", "personal data", "privacy", "anonymise", "anonymize", "redact", "mask", "email", "phone", "gdpr",
        "credit card", "ip address", "scrub",
        "脱敏", "隐私", "个人信息", "手机号", "身份证", "邮箱", "匿名", "电话",
        "dados pessoais", "anonimizar", "cpf", "e-mail", "telefone", "lgpd", "mascarar",
        "datos personales", "anonimizar", "correo", "teléfono", "tarjeta",
    ),
    reasons=("pii_found", "null_*"),
)  # fmt: skip
def redact(batch: pa.Table, params: RedactParams, ctx: Context) -> Outcome:
    """Redact every column of `params.columns`; see `RedactParams.mode`."""
    from datamill.operators.pii.redaction import redact_batch

    return then(without_nulls(batch, params.columns, params.on_null), lambda rows: redact_batch(rows, params, ctx.seed))
