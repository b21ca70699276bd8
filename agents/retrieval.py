"""Which operators and recipes fit a request: lexical retrieval over ids, summaries and keywords in four languages.

Scores are sums of inverse document frequencies (Sparck Jones 1972) of the words a request and an operator share, so
common words weigh little. Deterministic and offline; a language model gets the best few instead of the catalogue.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib import resources

from datamill.operators.registry import catalogue

WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]{2}", re.IGNORECASE)
MAX_OPERATORS = 16
RECIPES = "recipes"


def retrieve(request: str, limit: int = MAX_OPERATORS) -> dict[str, list[str]]:
    """Ids of the operators (best first) and recipes that fit `request`."""
    words = _terms(request)
    scores = {name: sum(weights.get(word, 0.0) for word in words) for name, weights in _index().items()}
    best = sorted((name for name, score in scores.items() if score > 0), key=lambda name: (-scores[name], name))
    return {"operators": best[:limit], "recipes": recipe_names()}


def recipe_names() -> list[str]:
    """Names of the shipped recipes."""
    folder = resources.files("datamill.workflows") / RECIPES
    return sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml"))


def _terms(text: str) -> set[str]:
    terms = {word.lower() for word in WORD.findall(text)}
    chinese = re.findall(r"[\u4e00-\u9fff]+", text)
    return terms | {run[i : i + 2] for run in chinese for i in range(len(run) - 1)}


@cache
def _index() -> Mapping[str, Mapping[str, float]]:
    documents = {
        name: _terms(f"{name} {operator.summary} {' '.join(operator.keywords)}")
        for name, operator in catalogue().items()
    }
    frequency = Counter(term for terms in documents.values() for term in terms)
    total = len(documents)
    return {name: {term: math.log(1 + total / frequency[term]) for term in terms} for name, terms in documents.items()}
