"""Which capabilities a request asks for, which it forbids, and in which order it wants them.

The order is by phase (cheap before costly) unless the request speaks of a sequence; "A before B", "after A, B" and
"first A" become constraints, and constraints that contradict one another are reported rather than guessed away.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from datamill.agents.rules.negation import negated, prohibition_spans
from datamill.agents.rules.request import NAME, QUOTED, Request
from datamill.agents.rules.vocabulary import CUES, DROP, KEEP, ONLY

_SEQUENCE = re.compile(
    r"\b(?:then|afterwards?|after that|finally|lastly|next|depois|em seguida|por fim|por ultimo|"
    r"despues|luego|finalmente|a continuacion|y al final)\b|然后|接着|最后|随后|(?:^|[,;，。\s])再|,再|之后"
)
_FIRST = re.compile(
    r"\bfirst\b(?! (?:of|in|\d|one|row|occurrence|copy|turn|message|line))|\bto start\b|"
    r"\bprimeiro\b|\bprimero\b|\bantes de (?:tudo|todo|nada)\b|先(?!不)|首先"
)
_BEFORE = re.compile(r"\b(?:before|prior to|antes (?:de|que|da|do)|ahead of)\b(?! (?:tudo|todo|nada))")
_AFTER = re.compile(r"\b(?:after|once|depois (?:de|que|da|do)|apos|despues de|tras)\b(?! (?:that|the run|this))")
_HAN_BEFORE = re.compile(r"(?:之前|以前|前)(?=先|,|就|要)|之前")
_HAN_AFTER = re.compile(r"(?:之后|以后|后)(?=再|,|就|要)|之后")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A capability the request speaks of.

    Attributes:
        capability: catalogue id, or a coarse name (`dedup`, `sample`, `balance`, `topk`, `clean`) resolved later.
        start: first character of its words.
        end: one past them.
        forbidden: whether the request rules it out.
        defect: whether the words name the fault to remove rather than the operation.
    """

    capability: str
    start: int
    end: int
    forbidden: bool = False
    defect: bool = False


def mentions(request: Request) -> tuple[Wanted, ...]:
    """Every operator word of a request in order, overlapping weaker readings removed."""
    text = request.masked
    closed = prohibition_spans(request)
    found = []
    for cue in CUES:
        for match in cue.pattern.finditer(text):
            if match.end() > match.start() and not _inside(match.start(), closed):
                refused = negated(request, match.start(), cue.kind)
                found.append(Wanted(cue.capability, match.start(), match.end(), refused, cue.kind == "defect"))
    kept = sorted(_without_overlaps(found), key=lambda wanted: wanted.start)
    if any(w.capability == "dedup" and w.forbidden and not w.defect for w in kept):
        kept = [w for w in kept if not (w.capability.startswith("dedup") and w.defect and not _governed(request, w))]
    return tuple(w for w in kept if not _named_only(request, w, kept))


def _governed(request: Request, wanted: Wanted) -> bool:
    """Whether a verb of dropping stands in the clause: "repeated complaints are a signal" drops nothing."""
    clause = request.clause_at(wanted.start)
    return re.search(DROP, request.masked[clause.start : clause.end]) is not None


def _named_only(request: Request, wanted: Wanted, found: list[Wanted]) -> bool:
    """Words that name data rather than a wish: paraphrases to drop, the format converted from."""
    before = request.masked[max(0, wanted.start - 24) : wanted.start]
    after = request.masked[wanted.end : wanted.end + 40]
    others = {w.capability for w in found}
    name = wanted.capability
    if name == "synth.qa_from_doc":
        around = request.masked[request.sentence_at(wanted.start).start : wanted.end]
        each = re.match(r".{0,16}(?:\bper\b|\beach\b|\bpor\b|\bcada\b|每)", request.masked[wanted.end :])
        return not (re.search(_MAKING, around) or each)
    if name == "format.chat":
        return _converted_from(request, wanted, found)
    counted = request.masked[request.clause_at(wanted.start).start : wanted.start]
    return bool(
        (
            name.startswith("dedup")
            and (re.match(_BOTH_SIDES, after) or (wanted.defect and re.search(_COUNTED, counted)))
        )
        or (
            name == "math.solve_vote"
            and "score.llm_judge" in others
            and "vote" in request.masked[wanted.start : wanted.end]
        )
        or (name == "topk" and "filter.perplexity" in others)
        or (name == "parse.html" and "parse.pdf" in others)
        or (name == "augment.paraphrase" and re.search(rf"(?:{DROP})\s*(?:the |any |all )*$", before))
    )


def _converted_from(request: Request, wanted: Wanted, found: list[Wanted]) -> bool:
    """`sharegpt -> alpaca`: the first format is what there is."""
    later = [w for w in found if w.capability in {"format.alpaca", "format.preference"} and w.start >= wanted.end]
    between = request.masked[wanted.end : later[0].end] if later else ""
    return (
        bool(between)
        and len(between) < 40
        and re.search(r">|\b(?:to|into|para|a|em|en)\b|转|成|为", between) is not None
    )


def _inside(position: int, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)


_BOTH_SIDES = (
    r"\s*(?:\w+ )?(?:never|not|don'?t|do not|cannot|can'?t) (?:\w+ ){0,3}(?:both|different|two|"
    r"across)|\s*(?:\w+ )?(?:stay|remain|land|end up) (?:\w+ ){0,2}(?:the )?(?:same|one) side|"
    r".{0,6}(?:同一侧|两边|两侧)"
)
_COUNTED = (
    r"(?:how many|number of|amount of|share of|percentage of|\bcount(?:s|ing)?\b|quant[oa]s|cuant[oa]s|numero de|"
    r"porcentagem de|porcentaje de|"
    r"有多少|多少)\s*(?:[\w%]+ ){0,2}$"
)
_MAKING = re.compile(
    r"\b(?:pull|deriv|get|generat|mak|creat|turn|transform|writ|synthes|extract|build|produc|deriv|ask|ger[ae]|"
    r"gener|cri[ae]|crea|extra|mont|constru|escrib|escrev|hac|faz|faç)\w*|生成|产出|构造|提取|做|出"
)
_FIRST_CHOICE = frozenset({"augment.paraphrase"})
_STRONG = (
    "dedup.semantic",
    "dedup.minhash",
    "dedup.exact",
    "dedup.paragraph",
    "report.stats",
    "filter.gopher_repetition",
)


def _without_overlaps(found: list[Wanted]) -> list[Wanted]:
    """The longest reading of overlapping words wins; a rate or a count of duplicates is a statistic."""
    ranked = sorted(
        found,
        key=lambda w: (w.capability not in _FIRST_CHOICE, -(w.end - w.start), w.capability not in _STRONG, w.start),
    )
    kept: list[Wanted] = []
    for wanted in ranked:
        clash = [other for other in kept if wanted.start < other.end and other.start < wanted.end]
        if all(_compatible(wanted, other) for other in clash):
            kept.append(wanted)
    return kept


def _compatible(first: Wanted, second: Wanted) -> bool:
    pair = {first.capability, second.capability}
    return pair in ({"sample", "balance"}, {"topk", "sample"}, {"annotate.llm", "balance"})


def sequence_pairs(request: Request, wanted: tuple[Wanted, ...]) -> tuple[tuple[str, str, str], ...]:
    """Explicit order constraints `(before, after, kind)`; kind is `before`, `after` or `first`."""
    pairs: list[tuple[str, str, str]] = []
    for pattern, kind in ((_BEFORE, "before"), (_AFTER, "after")):
        for match in pattern.finditer(request.masked):
            pairs.extend(_around(request, wanted, match.start(), match.end(), kind))
    for pattern, kind in ((_HAN_BEFORE, "before"), (_HAN_AFTER, "after")):
        for match in pattern.finditer(request.masked) if request.language == "zh" else ():
            pairs.extend(_han_around(request, wanted, match.start(), match.end(), kind))
    pairs.extend(_first_pairs(request, wanted))
    return tuple(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))


def _around(
    request: Request, wanted: tuple[Wanted, ...], start: int, end: int, kind: str
) -> list[tuple[str, str, str]]:
    sentence = request.sentence_at(start)
    left = [w for w in wanted if sentence.start <= w.start and w.end <= start]
    right = [w for w in wanted if end <= w.start < sentence.end]
    if not right or right[0].start - end > 30:
        return []
    if left:
        pair = (left[-1].capability, right[0].capability)
    elif len(right) > 1:
        pair = (right[1].capability, right[0].capability)
    else:
        return []
    return [(*pair, kind) if kind == "before" else (pair[1], pair[0], kind)]


def _han_around(
    request: Request, wanted: tuple[Wanted, ...], start: int, end: int, kind: str
) -> list[tuple[str, str, str]]:
    """Chinese puts the conjunction after the verb: 翻译之前先去重 is "before translating, deduplicate"."""
    sentence = request.sentence_at(start)
    left = [w for w in wanted if sentence.start <= w.start and w.end <= start and start - w.end <= 6]
    right = [w for w in wanted if end <= w.start < sentence.end]
    if not left or not right:
        return []
    pair = (left[-1].capability, right[0].capability)
    return [(pair[1], pair[0], kind)] if kind == "before" else [(*pair, kind)]


def _first_pairs(request: Request, wanted: tuple[Wanted, ...]) -> list[tuple[str, str, str]]:
    """`dedup first and then ...`: the operator nearest to `first` in its clause precedes all others."""
    pairs: list[tuple[str, str, str]] = []
    for match in _FIRST.finditer(request.masked):
        clause = request.clause_at(match.start())
        near = [w for w in wanted if clause.start <= w.start < clause.end]
        if request.language == "zh":
            near = [w for w in near if w.start >= match.end()]
        left = [w for w in near if w.end <= match.start()]
        chosen = left[-1] if left else near[0] if near else None
        if chosen:
            pairs += [(chosen.capability, w.capability, "first") for w in wanted if w.capability != chosen.capability]
    return pairs


def speaks_of_sequence(request: Request) -> bool:
    """Whether the order of words is the order of steps."""
    return _SEQUENCE.search(request.masked) is not None


def polarity(request: Request, start: int, end: int) -> str:
    """`drop` or `keep`: the verb that governs a condition at `[start, end)`; empty when there is none."""
    sentence, clause = request.sentence_at(start), request.clause_at(start)
    text = request.masked
    if request.language == "zh":
        inside = text[clause.start : clause.end]
        verbs = _verbs(inside)
        if verbs:
            return min(verbs, key=lambda verb: abs(verb[0] + clause.start - end))[1]
    if re.search(
        r"\b(?:without|nothing|sem|sin|nada|ningun[ao]?|nenhum[a]?)\b(?: \w+){0,4}\s*$|没有[^,，。]{0,8}$",
        text[clause.start : start],
    ):
        return "drop"
    before = _verbs(text[sentence.start : start])
    if before:
        return before[-1][1]
    after = _verbs(text[end : sentence.end])
    return after[0][1] if after else ""


def _verbs(text: str) -> list[tuple[int, str]]:
    found = [(match.start(), "drop") for match in re.finditer(DROP, text)]
    found += [(match.start(), "keep") for match in re.finditer(KEEP, text)]
    return sorted(found)


def only_this(request: Request, wanted: Wanted) -> bool:
    """Whether the request says `only` right before an operator word: nothing else is to be done."""
    before = request.masked[max(0, wanted.start - 12) : wanted.start]
    return re.search(rf"{ONLY}\s*$", before) is not None


def resolve_dedup(request: Request, found: tuple[Wanted, ...], keyed: bool, threshold: bool) -> tuple[Wanted, ...]:
    """Replace the coarse `dedup` by exact, near, or both.

    Args:
        request: the request.
        found: all mentions.
        keyed: whether a key column is named for it, which only exact comparison can mean.
        threshold: whether a similarity is given, which only near comparison can mean.
    """
    precise = {w.capability for w in found if w.capability.startswith("dedup.") and not w.forbidden}
    banned = {w.capability for w in found if w.capability.startswith("dedup.") and w.forbidden}
    resolved: list[Wanted] = []
    for wanted in found:
        if wanted.capability != "dedup":
            resolved.append(wanted)
        elif wanted.forbidden:
            resolved += [
                replace(wanted, capability=name) for name in ("dedup.exact", "dedup.minhash") if name not in precise
            ]
        elif not precise:
            chosen = (
                ("dedup.exact",) if keyed else ("dedup.minhash",) if threshold else ("dedup.exact", "dedup.minhash")
            )
            resolved += [replace(wanted, capability=name) for name in chosen if name not in banned]
        else:
            resolved += [replace(wanted, capability=name) for name in sorted(precise)]
    return tuple(resolved)


def masks_only(text: str) -> bool:
    """Whether a stretch is a masked name."""
    return bool(text) and all(character in QUOTED + NAME for character in text)
