"""One pass over a request: everything the step builders, the questions and the assembly look at."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from datamill.agents.inspection import InputFacts, Inspection, role_of
from datamill.agents.rules.columns import column_for, facts_for, implied_roles, named_columns, text_columns
from datamill.agents.rules.intents import Wanted, mentions
from datamill.agents.rules.language import languages_named
from datamill.agents.rules.negation import prohibitions
from datamill.agents.rules.quantities import Quantity, quantities
from datamill.agents.rules.request import Request, Span
from datamill.agents.rules.sources import Source, sources
from datamill.agents.rules.training_words import TrainingWish, is_training_mixture, static_mixture, training_wish

_INSTRUCTION_DATA = re.compile(r"instruc\w*|\bsft\b|alpaca|指令|fine-?tun|微调|prompt")
_LABELS = frozenset({"source", "score", "language", "id"})
_KEYED = frozenset({"dedup", "dedup.exact", "balance", "split", "columns.select", "columns.cast"})
"""Steps whose columns are keys, not the text that other steps read."""
_GROUPS = frozenset({"label", "category", "topic", "difficulty", "class", "url"})
_SIMILARITY = re.compile(
    r"threshold|jaccard|cosine(?: similarity)?|\bcos\b|cosseno|coseno|余弦(?:相似度)?|similarit\w*|similar\b|limiar|"
    r"umbral|similaridade|similitud|阈值|相似度?|cut-?off"
)


def _family(wanted: Wanted) -> str:
    return wanted.capability.split(".", maxsplit=1)[0]


@dataclass
class Reading:
    """A request as the rules understand it.

    Attributes:
        request: the text.
        inspection: what is known of the attached inputs.
        claimed: numbers already used, by position.
        left_out: labels of steps left out of the draft because the request keeps every row.
    """

    request: Request
    inspection: Inspection | None = None
    claimed: set[int] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Data named."""
        return sources(self.request)

    @cached_property
    def numbers(self) -> tuple[Quantity, ...]:
        """Numbers named."""
        return quantities(self.request)

    @cached_property
    def columns(self) -> tuple[tuple[str, int], ...]:
        """Columns named outright."""
        return named_columns(self.request)

    @cached_property
    def prohibitions(self) -> tuple[str, ...]:
        """Prohibitions over the whole plan."""
        return prohibitions(self.request)

    @cached_property
    def languages(self) -> tuple[tuple[int, str], ...]:
        """Languages named."""
        return languages_named(self.request.masked)

    @cached_property
    def training(self) -> TrainingWish | None:
        """What is said about training."""
        wish = training_wish(self.request, self.sources)
        if wish is None and is_training_mixture(self.request):
            wish = static_mixture(self.request)
        return None if "no_training" in self.prohibitions else wish

    @cached_property
    def mentions(self) -> tuple[Wanted, ...]:
        """Operator words, without those that name a training method."""
        spans = self.training.spans if self.training else []
        trained = {"score.reward"} if self.training and self.training.stage == "rm" else set()
        return tuple(
            w
            for w in mentions(self.request)
            if w.capability not in trained
            and not any(at == w.start for _, at in self.columns)
            and not any(a <= w.start < b for a, b in spans)
        )

    @cached_property
    def facts(self) -> InputFacts | None:
        """Facts of the first input."""
        named = next((source.name for source in self.sources if source.purpose == "input"), None)
        return facts_for(self.inspection, named)

    @property
    def instruction_like(self) -> bool:
        """Whether the request speaks of instruction data."""
        return _INSTRUCTION_DATA.search(self.request.masked) is not None

    def text(self) -> tuple[str, ...]:
        """Text columns of the file; without an inspection those the request names, else the usual ones."""
        if self.facts is None or not self.facts.columns:
            keyed = [self.request.clause_at(w.start) for w in self.mentions if w.capability in _KEYED]
            named = tuple(
                dict.fromkeys(
                    name
                    for name, at in self.columns
                    if role_of(name) not in _LABELS
                    and name not in _GROUPS
                    and not any(c.start <= at < c.end for c in keyed)
                )
            )
            if named:
                return named
        return text_columns(self.facts, self.instruction_like)

    def columns_near(self, wanted: Wanted) -> tuple[str, ...]:
        """Columns named in the clause of an operator word or in the next ones, up to the next operator word."""
        start, end = self.stretch(wanted)
        named = [(name, at) for name, at in self.columns if start <= at < end]
        rival = next(
            (w.start for w in self.mentions if wanted.end < w.start < end and _family(w) != _family(wanted)), end
        )
        named = [(name, at) for name, at in named if at < rival] or named
        named = self._own(named, self.request.clause_at(wanted.start)) or named
        if named:
            return tuple(dict.fromkeys(name for name, _ in named))
        clause = self.request.clause_at(wanted.start)
        roles = implied_roles(self.request, clause.start, min(clause.end, wanted.end + 24), (wanted.start, wanted.end))
        found = [column_for(role, self.facts) for role in roles[:1]]
        return tuple(name for name in found if name)

    def _own(self, named: list[tuple[str, int]], clause: Span) -> list[tuple[str, int]]:
        """Columns inside a clause, with those that go on the same list after a comma."""
        kept: list[tuple[str, int]] = []
        for name, at in named:
            last = kept[-1] if kept else None
            joined = last is not None and re.fullmatch(
                r"[\s,&+、\"'`\ue002]*(?:and|e|y|和|与)?[\s\"'`]*", self.request.masked[last[1] + len(last[0]) : at]
            )
            if clause.start <= at < clause.end or joined:
                kept.append((name, at))
        return kept

    def stretch(self, wanted: Wanted) -> tuple[int, int]:
        """From the clause of an operator word to the next operator word outside that clause."""
        clause = self.request.clause_at(wanted.start)
        later = [w.start for w in self.mentions if w.start >= clause.end and w.capability != wanted.capability]
        limit = self.request.clause_at(later[0]).start if later else len(self.request.text) + 1
        earlier = [
            w.end for w in self.mentions if clause.start <= w.end <= wanted.start and _family(w) != _family(wanted)
        ]
        return (max([clause.start, *earlier]), max(limit, clause.end))

    def take(self, quantity: Quantity) -> Quantity:
        """Mark a number as used."""
        self.claimed.add(quantity.start)
        return quantity

    def free(self, start: int = 0, end: int | None = None, units: Sequence[str] = ()) -> list[Quantity]:
        """Unused numbers within `[start, end)`, of given units."""
        limit = len(self.request.text) + 1 if end is None else end
        return [
            q
            for q in self.numbers
            if q.start not in self.claimed and start <= q.start < limit and (not units or q.unit in units)
        ]

    def after_word(self, pattern: str, gap: int = 16, start: int = 0, end: int | None = None) -> Quantity | None:
        """The first unused number right after a word, in the same clause."""
        limit = len(self.request.text) + 1 if end is None else end
        for match in re.finditer(pattern, self.request.masked):
            if not start <= match.start() < limit:
                continue
            for quantity in self.free():
                between = self.request.masked[match.end() : quantity.start]
                if 0 <= quantity.start - match.end() <= gap and not re.search(r"[;.。]\s|,\s", between):
                    return quantity
        return None

    def gram(self) -> Quantity | None:
        """The unused size of an n-gram: `13-gram`, `n-gramas de 13`."""
        written = next(iter(self.free(units=("gram",))), None)
        return written or self.after_word(r"n-?gram\w*(?: size| tamanho| tamano)?(?: de| of| =|:)?")

    @cached_property
    def similarity(self) -> Quantity | None:
        """The number after a word of similarity, whatever its range."""
        named = self.after_word(_SIMILARITY.pattern)
        if named is not None:
            return named
        beside = (
            r"\s?(?:or (?:more|higher|above) |ou mais |o mas )?(?:jaccard|cosine|cos\b|cosseno|coseno|"
            r"similarity|similaridade|similitud|overlap\b(?! with))"
        )
        return next(
            (q for q in self.free() if 0 < q.share <= 1 and re.match(beside, self.request.masked[q.end :])), None
        )
