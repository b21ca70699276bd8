"""Builder for an LLM judge: the least score that stays, the scale it is on, and how many votes are taken."""

import re
from typing import Any

from datamill.agents.rules.intents import Wanted, polarity
from datamill.agents.rules.nodes import Node, node
from datamill.agents.rules.quantities import Quantity
from datamill.agents.rules.reading import Reading


def build_judge(reading: Reading, wanted: Wanted) -> list[Node]:
    """`score.llm_judge`: least score and scale."""
    text, numbers = reading.request.masked, list(reading.free())
    params: dict[str, Any] = {}
    out_of = re.search(
        (
            r"(\d+(?:[.,]\d+)?)\s*(?:\w+ ){0,3}?(?:out of|of|de|sobre|em|/|分制?\s?[/,]?\s?(?:满分|"
            r"共))\s*(?:um total de )?(10|100|5|4|3|7)\b"
        ),
        text,
    )
    scale = re.search(
        (
            r"(?:\bfrom|\bde|\bdel|between|entre)\s(\d)\s*(?:-|to|ao?|and|ate|y|e)\s*(\d{1,3})(?!\d| (?:words|char|"
            r"tok))|(\d)\s?[-~到至]\s?(\d{1,3})\s?分|"
            r"(?:scale|escala)\s*(?:of |from |de )?(\d+)\s*(?:-|to|a|ate)\s*(\d+)|(\d+)\s*(?:-|to|a|到|"
            r"至)\s*(\d+)\s*(?:scale|escala|分|points?)|(\d+)\s?-?\s?(?:point|分制|分满分|pontos|puntos)|满分(?:为|"
            r"是)?\s?(\d+)|out of (\d+)|(?<![\d.])([01])\s?-\s?(10|100|5|4|3|7)(?![\d.])"
        ),
        text,
    )
    least = next(
        (
            q
            for q in numbers
            if (q.sign in {"ge", "gt"} or _drops_below(reading, q)) and q.unit in {"", "votes"} and q.value <= 100
        ),
        None,
    )
    if out_of:
        params = {"min_score": _number(out_of.group(1)), "scale": [1, int(out_of.group(2))]}
        for quantity in reading.free(out_of.start(), out_of.end()):
            reading.take(quantity)
    elif least and (least.start > wanted.start or abs(least.start - wanted.start) < 60):
        params["min_score"] = reading.take(least).value
    if scale and "scale" not in params:
        found = [int(part) for part in scale.groups() if part]
        params["scale"] = found if len(found) == 2 else [1, found[0]]
    topic = re.search(
        r"educational (?:value|quality)|helpfulness|correctness|clarity|fluency|valor educativo|教育价值|有用性|流畅",
        text,
    )
    if topic:
        params["criterion"] = topic.group()
    votes = next((q for q in reading.free(units=("votes",))), None)
    if votes:
        params["votes"] = reading.take(votes).value
    return [node(reading, wanted, params)]


def _drops_below(reading: Reading, quantity: Quantity) -> bool:
    """`drop those under 3` keeps 3 and more."""
    return quantity.sign == "lt" and polarity(reading.request, quantity.start, quantity.end) == "drop"


def _number(text: str) -> int | float:
    value = float(text.replace(",", "."))
    return int(value) if value == int(value) else value
