"""Second thoughts in a request: "at 0.9 - no wait, 0.7", "to Spanish, sorry, Portuguese", 阈值 0.9，不对，0.8.

A correction is a cue followed by a value of a kind that was named shortly before: a number, a path, a language or a
model. The later value takes the place of the earlier one and the cue goes, so that every other rule reads one value.
Also read: `not 0.9 but 0.7` and `0.7, not 0.9`. Cost: a few regular expressions.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from datamill.agents.rules.columns import named_columns
from datamill.agents.rules.language import languages_named
from datamill.agents.rules.quantities import Quantity, quantities
from datamill.agents.rules.request import Request

REACH = 90
"""Characters before a cue within which the corrected value stands."""

_CUE = re.compile(
    r"(?<![a-z])(?:(?:no|oh|uh|um|hmm+|eh)[,.!]*\s)*(?:wait|hold on|scratch that|sorry|oops|my bad|correction|"
    r"or rather|on second thought|actually|i mean|i meant|make (?:it|that)|change (?:it|that) to|nope|better:|"
    r"espera|aliás|alias|quer dizer|quero dizer|digo|melhor dizendo|na verdade|desculp[ae]|ops|opa|corrigindo|"
    r"perdon|perdona|mejor dicho|quiero decir|en realidad|mas bien|corrijo|melhor|mejor)(?![a-z])"
    r"|(?:^|[-,;.(\s])(?:no|nao)(?=,\s)"
    r"|不对|不是|哦不|等等|等一下|算了|说错了|我是说|更正|应该是|改成|改为|还是(?=\s?\d)"
)
_FILLER = (
    r"(?:[\s,:;.!…—-]|\b(?:no|wait|nope|use|take|do|say|try|go with|let'?s|make|it|that|should|be|is|at|to|of|a|the|"
    r"by|on|in|"
    r"with|set|i|mean|meant|sorry|actually|please|just|only|"
    r"nao|usa|use|usar|pon|poe|bota|coloca|faz|sea|seja|es|e|em|en|con|com|un|uma?|una|de|para|por|o|el|la|espera|"
    r"columns?|coluna|columna|threshold|limiar|umbral|seed|semente|semilla|jaccard|similarity|lr|rate)\b|"
    r"用|是|为|取|设|成|按|改|应该|阈值|种子|吧|,|，|、)*"
)
_NOT_BUT = re.compile(r"(?<![a-z])(?:not|no|nao|不是)\s+(?:\w+ )?$", re.IGNORECASE)
_BUT = re.compile(r"\s*(?:\w+\s*)?(?:,\s*)?(?:but|mas|sino|pero|而是|是)\s+$")
_AFTERTHOUGHT = re.compile(
    r"\s*[,(]?\s*(?:and |e |y )?(?:not|instead of|rather than|em vez de|en vez de|en lugar de|ao inves de|nao|no|"
    r"而不是|不是)\s+(?:at |em |en |de )?$"
)

_LEAD = re.compile(r"(?:[\s,;.:(…-]|、|\b(?:no|nao|hmm+|oh|uh|um|eh|but|mas|pero)\b|哦|嗯)+$")
_NUMBER = re.compile(
    r"^\d[\d.,]*(?:e[-+]?\d+)?(?:\s?(?:k|mil|thousand|million|m|b|万|千|百万|亿)(?![A-Za-z]))?", re.IGNORECASE
)
_SHARES = re.compile(r"(?<![\w./:-])\d{1,3}%?(?:\s?[/:]\s?\d{1,3}%?){1,3}(?![\w/])")


@dataclass(frozen=True)
class _Value:
    start: int
    end: int
    text: str
    unit: str = ""


def corrected(text: str) -> str:
    """The request with every correction carried out.

    >>> corrected("near dedup at 0.9, no wait, 0.7, then split 90/10")
    'near dedup at 0.7, then split 90/10'
    """
    for _ in range(4):
        changed = _once(text)
        if changed == text:
            break
        text = changed
    return text


def _once(text: str) -> str:
    request = Request(text)
    for find in (_shares, _numbers, _paths, _models, _languages, _columns):
        values = find(request)
        contrasted = _contrast(request, values)
        if contrasted is not None:
            return contrasted
        for cue in _CUE.finditer(request.folded):
            replaced = _replaced(request, values, cue)
            if replaced is not None:
                return replaced
    return text


def _replaced(request: Request, values: list[_Value], cue: re.Match[str]) -> str | None:
    """The text with the value before the cue replaced by the one after it; None when the cue corrects nothing."""
    later = next((v for v in values if v.start >= cue.end()), None)
    if later is None or not re.fullmatch(_FILLER, request.folded[cue.end() : later.start]):
        return None
    earlier = _corrected_value(values, cue.start(), later)
    if earlier is None:
        return None
    text = request.text
    stop = cue.start()
    lead = _LEAD.search(request.folded[earlier.end : stop])
    stop = earlier.end + lead.start() if lead else stop
    rest = text[later.end :]
    rest = rest[1:] if "(" in text[stop : cue.start()] and rest.startswith(")") else rest
    new = (
        later.text
        if later.unit or not earlier.unit
        else later.text + _NUMBER.sub("", text[earlier.start : earlier.end], count=1)
    )
    return text[: earlier.start] + new + text[earlier.end : stop] + rest


def _corrected_value(values: list[_Value], before: int, later: _Value) -> _Value | None:
    near = [v for v in values if v.end <= before and before - v.end <= REACH]
    if later.unit:
        same = [v for v in near if v.unit == later.unit]
        return same[-1] if same else next((v for v in reversed(near) if not v.unit), None)
    small = _is_share(later)
    alike = [v for v in near if _is_share(v) == small]
    return alike[-1] if alike else None


def _is_share(value: _Value) -> bool:
    """Whether a number is written as a share such as 0.7 or 0,85."""
    return re.match(r"0?[.,]\d", value.text) is not None


def _contrast(request: Request, values: list[_Value]) -> str | None:
    """`not 0.9 but 0.7` and `0.7, not 0.9` name one value that holds."""
    text = request.text
    for first, second in pairwise(values):
        between = request.folded[first.end : second.start]
        negated = _NOT_BUT.search(request.folded[: first.start])
        if negated and _BUT.fullmatch(between):
            return text[: negated.start()] + text[second.start :]
        if _AFTERTHOUGHT.fullmatch(between) and first.unit in {second.unit, ""} | (
            {first.unit} if not second.unit else set()
        ):
            return text[: first.end] + text[second.end :]
    return None


def _shares(request: Request) -> list[_Value]:
    """Lists of shares such as 90/10."""
    return [
        _Value(m.start(), m.end(), request.text[m.start() : m.end()], "shares")
        for m in _SHARES.finditer(request.masked)
    ]


def _numbers(request: Request) -> list[_Value]:
    listed = _shares(request)
    return [
        _number(request, quantity)
        for quantity in quantities(request)
        if not any(span.start <= quantity.start < span.end for span in listed)
    ]


def _number(request: Request, quantity: Quantity) -> _Value:
    unit = "" if quantity.unit == "rounds" else quantity.unit
    return _Value(quantity.start, quantity.end, request.text[quantity.start : quantity.end], unit)


def _paths(request: Request) -> list[_Value]:
    return [_Value(span.start, span.end, span.text) for span in request.paths]


def _models(request: Request) -> list[_Value]:
    return [_Value(span.start, span.end, span.text) for span in request.models]


def _languages(request: Request) -> list[_Value]:
    found = []
    for start, _ in languages_named(request.masked):
        word = re.match(r"[^\W\d_]+", request.text[start:])
        if word:
            end = start + (2 if request.language == "zh" else word.end())
            found.append(_Value(start, end, request.text[start:end]))
    return found


def _columns(request: Request) -> list[_Value]:
    """Columns, those of one list together."""
    found: list[_Value] = []
    for name, start in named_columns(request):
        last = found[-1] if found else None
        if last and re.fullmatch(r"[\"'`]?\s*(?:,|&|\+|and|e|y|和|、)+\s*[\"'`]?", request.folded[last.end : start]):
            found[-1] = _Value(last.start, start + len(name), request.text[last.start : start + len(name)])
        else:
            found.append(_Value(start, start + len(name), name))
    return found


Finder = Callable[[Request], list[_Value]]
