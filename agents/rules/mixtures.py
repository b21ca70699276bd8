"""Domain weights in a request: `70% code 20% math`, `code 0.5, math 0.5`, `7:2:1 of code, math, chat`."""

import re

from datamill.agents.rules.reading import Reading

_NAME = r"(?P<name>[a-z_][\w-]*|[一-鿿]{2,4})"
_SHARE_FIRST = re.compile(
    rf"(?P<share>\d+(?:[.,]\d+)?)\s?(?:%|percent|por cento|por ciento)\s?(?:of |de |do |da |from |的)?(?:the )?{_NAME}"
)
_NAME_FIRST = re.compile(
    rf"{_NAME}\s?(?:at |to |com |con |占|:|=|的)?\s?(?P<share>\d+(?:[.,]\d+)?)\s?(?:%|percent|por cento|por ciento)"
)
_FRACTION = re.compile(rf"{_NAME}\s?(?:at |=|:|com |con |占)?\s?(?P<share>0?[.,]\d+)(?!\d)")
_PARTS = re.compile(r"(?<![\d.])(\d+)\s?:\s?(\d+)(?:\s?:\s?(\d+))?(?:\s?:\s?(\d+))?(?![\d.])")
_STOP = frozenset(
    "and or y e of the rows total more each data sample samples at to in mix mistura mezcla train with ratio of threshold de do da".split()
)


def domain_weights(reading: Reading) -> dict[str, float]:
    """Weights by domain, as shares of one in the order written; empty when the request names fewer than two.

    They need not sum to one: that is for a question to settle.
    """
    text = reading.request.folded
    for pattern, scale in ((_SHARE_FIRST, 100), (_NAME_FIRST, 100), (_FRACTION, 1)):
        found = {
            match["name"]: round(float(match["share"].replace(",", ".")) / scale, 6)
            for match in pattern.finditer(text)
            if match["name"] not in _STOP
        }
        if len(found) >= 2:
            return found
    return _from_parts(reading)


def _from_parts(reading: Reading) -> dict[str, float]:
    match = _PARTS.search(reading.request.folded)
    if not match:
        return {}
    parts = [int(part) for part in match.groups() if part]
    names = [source.name for source in reading.sources if source.purpose == "input"]
    if len(names) != len(parts):
        around = re.search(
            r"([a-z_]\w*|[一-鿿]{2,4})(?:\s*(?:,|/|:|and|e|y|和|与|、)\s*([a-z_]\w*|[一-鿿]{2,4})){1,3}",
            reading.request.folded[match.end() :],
        )
        names = re.findall(r"[a-z_]\w*|[一-鿿]{2,4}", around.group()) if around else []
        names = [name for name in names if name not in _STOP]
    if len(names) != len(parts) or sum(parts) == 0:
        return {}
    return {name: round(part / sum(parts), 6) for name, part in zip(names, parts, strict=True)}
