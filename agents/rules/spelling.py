"""Misspelt words of the field: `remvoe duplicte rows` reads as `remove duplicate rows`.

Only words that no cue knows are looked at, and only slips of one letter: two letters swapped, one left out, one too
many, and, in words of eight letters or more, one wrong (Damerau 1964). Names of files, columns, models and quoted
words stay as they are. Cost: a few hundred comparisons a request.
"""

import re
from functools import cache

from datamill.agents.rules.request import Request
from datamill.agents.rules.vocabulary import CUES, DROP, KEEP

_WORDS: dict[str, str] = {
    "en": (
        "remove duplicate duplicates duplicated deduplicate dedupe filter filtering language languages english chinese "
        "portuguese spanish german french column columns sample random shorter longer characters threshold similarity "
        "training train finetune translate translated anonymize redact emails phone statistics paraphrase convert "
        "format export delete answers answer questions question instruction instructions response responses tokens "
        "words normalize encoding unicode decontaminate contamination quality perplexity stratified balance "
        "validation verify rename select empty exact identical selection learning epochs warmup batch shuffle rows "
        "records prompts output parquet"
    ),
    "pt": (
        "remover remova duplicadas duplicados duplicatas repetidas filtrar idioma portugues ingles espanhol coluna "
        "colunas amostra aleatoria caracteres palavras limiar treinar treine traduzir traduza linhas estatisticas "
        "respostas resposta perguntas pergunta instrucoes semente vazias vazios anonimizar epocas"
    ),
    "es": (
        "eliminar elimina duplicados duplicadas repetidos repetidas filtrar idioma espanol ingles portugues columna "
        "columnas muestra aleatoria caracteres palabras umbral entrenar entrena traducir traduce filas estadisticas "
        "respuestas respuesta preguntas pregunta instrucciones semilla vacias vacios anonimizar epocas"
    ),
}
_WORD = re.compile(r"(?<![\w.@/-])[a-z]{3,}(?![\w@/]|\.\w)")
_COLUMN_NEAR = re.compile(r"(?:column|field|coluna|columna|campo|called|named|by|por|where|key)s?\s+$")
_SLIPS = {
    "teh": "the",
    "adn": "and",
    "frist": "first",
    "fisrt": "first",
    "wiht": "with",
    "taht": "that",
    "onyl": "only",
}
"""Common slips in words too short to compare."""
_INFLECTED = re.compile(r"(?:s|d|ed|er|es|ing|o|a|os|as|e|r|m|n)?")
_LEAST = 5
"""Letters of the shortest word that is corrected; shorter slips have too many readings."""


def spelled(text: str) -> str:
    """The request with slips in words of the field put right.

    >>> spelled("remvoe duplicte rows from faq.jsonl")
    'remove duplicate rows from faq.jsonl'
    """
    request = Request(text)
    pieces, last = [], 0
    for match in _WORD.finditer(request.masked):
        right = _correction(match.group(), request.language)
        if right is None or _COLUMN_NEAR.search(request.masked[: match.start()]):
            continue
        pieces += [text[last : match.start()], right]
        last = match.end()
    return "".join([*pieces, text[last:]])


def _correction(word: str, language: str) -> str | None:
    if word in _SLIPS:
        return _SLIPS[word]
    if len(word) < _LEAST - 1 or language not in _WORDS or _is_known(word):
        return None
    words = _WORDS[language].split()
    if any(_INFLECTED.fullmatch(word.removeprefix(k)) or k.startswith(word) for k in words if word.startswith(k[:4])):
        return None
    near = [known for known in words if len(known) >= _LEAST and _one_slip(word, known)]
    return near[0] if len(near) == 1 or (near and len(set(near)) == 1) else _shared_stem(near)


def _shared_stem(near: list[str]) -> str | None:
    """`duplicats` is near `duplicate` and `duplicates`: the shorter reading will do."""
    if len(near) < 2:
        return None
    shortest = min(near, key=len)
    return shortest if all(word.startswith(shortest[:-1]) for word in near) else None


@cache
def _is_known(word: str) -> bool:
    """Whether a cue or a verb of keeping or dropping reads the word."""
    if re.fullmatch(rf"(?:{DROP})|(?:{KEEP})", word):
        return True
    return any(cue.pattern.search(word) for cue in CUES)


def _one_slip(word: str, known: str) -> bool:
    """Whether one swap, one letter too few or many, or in long words one wrong letter, separates two words."""
    if word[0] != known[0] or abs(len(word) - len(known)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(word, known, strict=False)) if a != b), min(len(word), len(known)))
    if len(word) == len(known):
        swapped = word[at : at + 2] == known[at : at + 2][::-1] and word[at + 2 :] == known[at + 2 :]
        return swapped or (len(known) >= 8 and word[at + 1 :] == known[at + 1 :])
    longer, shorter = (word, known) if len(word) > len(known) else (known, word)
    return longer[at + 1 :] == shorter[at:]
