"""What a look at a sample of the inputs found: the facts a planner may use, and nothing else of the data.

Values of cells never appear here (only lengths, shares and roles), so an inspection can be logged, stored in a
thread and shown to a language model without leaking rows or carrying instructions hidden in them.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Role = Literal["instruction", "input", "output", "question", "answer", "solution", "prediction",
               "text", "messages", "source", "score", "language", "chosen", "rejected", "id"]  # fmt: skip

ROLE_NAMES: dict[Role, tuple[str, ...]] = {
    "instruction": ("instruction", "prompt", "query", "instrucao", "instruccion", "指令"),
    "input": ("input", "context", "contexto"),
    "output": ("output", "response", "completion", "reply", "saida", "salida", "resposta", "respuesta", "输出"),
    "question": ("question", "problem", "pergunta", "pregunta", "问题", "题目"),
    "answer": ("answer", "final_answer", "gold", "label_answer", "ground_truth", "答案"),
    "solution": ("solution", "rationale", "reasoning", "cot", "解答"),
    "prediction": ("prediction", "predicted", "model_answer"),
    "text": ("text", "content", "body", "raw_content", "document", "texto", "正文", "文本"),
    "messages": ("messages", "conversations", "conversation", "dialogue", "chat"),
    "source": ("source", "domain", "origin", "dataset", "fonte", "fuente", "来源"),
    "score": ("score", "rating", "quality", "nota", "分数"),
    "language": ("lang", "language", "idioma"),
    "chosen": ("chosen", "best"),
    "rejected": ("rejected", "worst"),
    "id": ("id", "uid", "uuid", "doc_id"),
}
"""Column names the field uses for each role, most usual first."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ColumnFacts(_Part):
    """One column of a sample.

    Attributes:
        name: as written in the file.
        dtype: Arrow type name.
        null_share: share of nulls in the sample, 0..1.
        mean_chars: mean length of the text form in characters.
        role: what the column seems to be.
    """

    name: str
    dtype: str = "string"
    null_share: float = Field(0.0, ge=0, le=1)
    mean_chars: float = Field(0.0, ge=0)
    role: Role | None = None


class InputFacts(_Part):
    """One input file.

    Attributes:
        path: relative to the project.
        format: `jsonl`, `json`, `csv`, `parquet` or `txt`.
        rows: rows in the file if counted, else None.
        columns: in file order.
        languages: share of each language in the sample (ISO 639-1).
    """

    path: str
    format: str = "jsonl"
    rows: int | None = Field(None, ge=0)
    columns: tuple[ColumnFacts, ...] = ()
    languages: dict[str, float] = Field(default_factory=dict)

    def column(self, role: Role) -> str | None:
        """Name of the first column with `role`."""
        return next((column.name for column in self.columns if column.role == role), None)

    def schema_only(self) -> "InputFacts":
        """The facts without anything measured on rows."""
        columns = tuple(c.model_copy(update={"null_share": 0.0, "mean_chars": 0.0}) for c in self.columns)
        return self.model_copy(update={"rows": None, "languages": {}, "columns": columns})

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(column.name for column in self.columns)


class Inspection(_Part):
    """All inputs attached to a request, and evaluation sets known to the project."""

    inputs: tuple[InputFacts, ...] = ()
    evaluation_sets: dict[str, str] = Field(default_factory=dict)

    def schema_only(self) -> "Inspection":
        """Names, types and roles of columns; everything measured on rows is left out (`--no-sample`)."""
        return self.model_copy(update={"inputs": tuple(facts.schema_only() for facts in self.inputs)})


def role_of(name: str) -> Role | None:
    """The role that a column name usually plays, or None.

    >>> role_of("Pergunta"), role_of("blob")
    ('question', None)
    """
    folded = name.strip().lower()
    return next((role for role, names in ROLE_NAMES.items() if folded in names), None)
