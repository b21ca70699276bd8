"""Recipes: named lists of steps for whole goals, read from `workflows/recipes/*.yaml`.

A recipe fires when its goal and its topic are both named ("build a math SFT set") or when the request asks for the
usual settings of its kind. What the request says wins over the recipe, and what it forbids is left out.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict

from datamill.agents.inspection import ROLE_NAMES, Role
from datamill.agents.rules.capabilities import CAPABILITIES
from datamill.agents.rules.columns import column_for
from datamill.agents.rules.nodes import Node
from datamill.agents.rules.reading import Reading
from datamill.workflows.yaml_file import parse

FOLDER = "recipes"
WORDS = {
    "{make}": (
        r"(?:build|creat\w*|mak\w+|prepar\w*|construct|curat\w*|assembl\w*|produc\w*|get|mont\w+|"
        r"cri(?:a|e|ar)\b|constru\w+|ger(?:a|e|ar)\b|arm\w+|crea\w*|hac\w+|haz|构建|制作|准备|做|整理|搭建|"
        r"生成)[^.;。]{0,60}?"
    ),
    "{set}": r"(?:\bsets?\b|\bdata\w*|\bcorpus|\bconjuntos?|\bdados|\bdatos|\bcorpora|数据|语料|训练集)",
}
"""Words of making a data set, and of data sets, that recipes share."""


class RecipeStep(BaseModel):
    """One step; a parameter value `@text`, `@question`, ... stands for the column with that role."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    operator: str
    params: dict[str, Any] = {}
    optional: bool = False
    needs_role: str | None = None
    why: str = ""


class Recipe(BaseModel):
    """A goal, the words that name it, and its steps.

    Attributes:
        goal: patterns over folded text, one of which must match.
        topic: patterns, one of which must match as well.
        priority: the greater wins when several fit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    summary: str
    goal: tuple[str, ...]
    topic: tuple[str, ...]
    priority: int = 1
    steps: tuple[RecipeStep, ...]


@dataclass(frozen=True)
class Match:
    """A recipe that fits, and the words that named it."""

    recipe: Recipe
    start: int
    quote: str


@cache
def recipes() -> tuple[Recipe, ...]:
    """All shipped recipes, sorted by file name.

    Raises:
        pydantic.ValidationError: for a recipe that does not fit the model.
    """
    folder = resources.files("datamill.workflows").joinpath(FOLDER)
    files = sorted((item for item in folder.iterdir() if item.name.endswith(".yaml")), key=lambda item: item.name)
    return tuple(Recipe.model_validate(parse(item.read_text(encoding="utf-8"), item.name).data) for item in files)


def matching_recipe(reading: Reading, usual: re.Match[str] | None) -> Match | None:
    """The recipe whose goal and topic the request names; the one with most topic words wins."""
    text = reading.request.masked
    best: tuple[tuple[int, int], Match] | None = None
    for recipe in recipes():
        goal = next((found for pattern in recipe.goal if (found := re.search(_spelled(pattern), text))), usual)
        topics = [found for pattern in recipe.topic for found in re.finditer(pattern, text)]
        rank = (recipe.priority, len(topics))
        if goal and topics and (best is None or rank > best[0]):
            best = (rank, Match(recipe, goal.start(), reading.request.quote(goal.start(), goal.end())))
    return best[1] if best else None


def recipe_nodes(match: Match, reading: Reading) -> list[Node]:
    """The recipe's steps as nodes, columns filled in; optional ones without a column are left out."""
    nodes = []
    for step in match.recipe.steps:
        if step.operator not in CAPABILITIES:
            continue
        if step.needs_role and reading.facts and reading.facts.columns and not _has_role(reading, step.needs_role):
            continue
        params = {name: _filled(value, reading) for name, value in step.params.items()}
        if step.optional and any(value is None for value in params.values()):
            continue
        params = {name: value for name, value in params.items() if value is not None}
        nodes.append(Node(step.operator, params, match.start, step.why or match.recipe.summary))
    return nodes


def _spelled(pattern: str) -> str:
    for word, words in WORDS.items():
        pattern = pattern.replace(word, words)
    return pattern


def _has_role(reading: Reading, roles: str) -> bool:
    return any(reading.facts is not None and reading.facts.column(_role(role)) for role in roles.split("|"))


def _filled(value: Any, reading: Reading) -> Any:
    """A parameter with its `@` names replaced; None when the file has no such column."""
    if isinstance(value, list):
        found = [_filled(item, reading) for item in value]
        return list(dict.fromkeys(item for item in found if item)) or None
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    named: dict[str, Callable[[], Any]] = {
        "@text": lambda: (reading.text() or ("text",))[0],
        "@texts": lambda: list(reading.text() or ("text",)),
        "@benchmarks": lambda: benchmark_keys(reading) or None,
        "@gold": lambda: gold_column(reading),
        "@languages": lambda: [code for _, code in reading.languages] or None,
    }
    if value in named:
        return named[value]()
    return next((column for role in value[1:].split("|") if (column := column_for(_role(role), reading.facts))), None)


def benchmark_keys(reading: Reading) -> list[str]:
    """Evaluation sets attached to the request, by path; development sets are no test sets."""
    if reading.inspection is None:
        return []
    return [path for name, path in sorted(reading.inspection.evaluation_sets.items()) if not is_target_name(name)]


def is_target_name(name: str) -> bool:
    """Whether a set is named as one that selection may aim at."""
    return re.search(r"(?:^|[/_.-])(?:dev|val|valid\w*|target)(?:[/_.-]|$)", name.lower()) is not None


def gold_column(reading: Reading) -> str | None:
    """The answer column, when something else is there to be checked against it."""
    facts = reading.facts
    if facts is None or not (facts.column("prediction") or facts.column("solution")):
        return None
    return facts.column("answer")


def _role(name: str) -> Role:
    return next(role for role in ROLE_NAMES if role == name)
