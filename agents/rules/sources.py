"""Which data a request names, and what each is for: input, output, evaluation set, target, older set to compare with.

Paths win over names; a name such as `c4_demo` or "dolly" stands for an attached or registered file of that name.
"""

import re
from dataclasses import dataclass
from typing import Literal

from datamill.agents.rules.request import MODEL, NAME, PATH, Request

Purpose = Literal["input", "output", "eval", "target", "against", "column", "delete"]

BENCHMARKS = (
    r"gsm-?8k|mmlu(?:[-_ ](?:stem|pro|redux))?|human-?eval(?:\+)?|mbpp|arc(?:-?(?:c|e|challenge|"
    r"easy))?|hellaswag|truthfulqa|bbh|big-?bench(?: hard)?|"
    r"c-?eval|cmmlu|agi-?eval|if-?eval|mt-?bench|alpaca-?eval|aime(?:\s?\d{2,4})?|gpqa|winogrande|"
    r"piqa|boolq|squad|svamp|mawps|asdiv|aqua|"
    r"math(?:-?500)?(?=[\s_-]*(?:test|dev|val|bench|train|测试|验证))|livecodebench|swe-?bench|xnli|"
    r"xquad|belebele|flores|enem|oab"
)
DATASETS = (
    r"dolly(?:[- ]15k)?|open-?hermes(?:[- ]?[\d.]+)?|ultra-?chat|ultra-?feedback|oasst\d?|"
    r"open-?orca|meta-?math(?:qa)?|numina-?math|wizard-?lm|"
    r"slim-?orca|code-?alpaca|evol-?instruct-code|magicoder|hh-?rlhf|tulu(?:[- ]?\d)?|lima|belle|"
    r"firefly|flan(?:[- ]?v2)?|no-?robots|open-?math\w*|"
    r"wikipedia|wiki(?:text)?|c4|mc4|oscar|redpajama|slimpajama|fineweb(?:-edu)?|the pile|dolma|"
    r"starcoder data|cosmopedia|tiny-?stories|cc-?news|"
    r"(?<=on )alpaca|(?<=of )alpaca|(?<=from )alpaca|(?<=em )alpaca|(?<=con )alpaca|(?<=with "
    r")alpaca|alpaca(?=[- ](?:data|set|gpt|clean))"
)
_SPLIT = (
    r"(?:[\s_-]*(?:'s |的)?(?P<split>dev(?:elopment)?|val(?:idation|id)?|test(?:ing|e)?|"
    r"train(?:ing)?|prueba|validac\w+|desenvolvimento|desarrollo|treino|entrenamiento|测试|验证|开发|"
    r"训练)(?:集|[\s_-]*(?:set|split))?(?![a-z]))?"
)
_BENCHMARK_RE = re.compile(rf"(?<![a-z0-9_])(?P<name>{BENCHMARKS})(?![a-z0-9]){_SPLIT}")
_DATASET_RE = re.compile(
    rf"(?<![a-z0-9_])(?P<name>{DATASETS})(?![a-z0-9])(?! (?:rules?|filter|format|style|heuristic)){_SPLIT}"
)
_SPLIT_FIRST_RE = re.compile(
    rf"(?<![a-z])(?P<split>dev|test|validation|val|train|teste?|prueba|validac\w+)(?: set| split)? "
    rf"(?:of|from|do|da|de|del) (?:the )?(?P<name>{BENCHMARKS}|gsm8k|math)(?![a-z0-9])"
)
_SPLITS = {
    "dev": r"dev|desenv|desarr|开发",
    "val": r"val|验证",
    "test": r"test|prueba|测试",
    "train": r"train|treino|entren|训练",
}

_WRITE = (
    r"(?:\b(?:out(?= (?:in|to|into|at)\b)|goes|land\w*|drop it|writ\w*(?! (?:an?|the|new|\d+|one|two|"
    r"three) (?:\w+ )?(?:answer|summar|question|response|explan|title|rationale|vari|version|instruct))|sav\w*|"
    r"output(?=(?: file| dir| folder| path)? ?(?:to|is|:|=|goes|should))|"
    r"export\w*|store|dump (?=it|the|them|to|in)|put|result\w*|"
    r"escrev\w*|salv\w*|grav\w*|export\w*|escrib\w*|guard\w*|saida|salida|resultado\w*)|"
    r"输出|保存|写入?|存(?:到|为|成|入)?|导出|结果)"
)
_OUTPUT_BEFORE = re.compile(
    rf"{_WRITE}(?:[^.;。]{{0,30}}?\s(?:to|into|in|as|at|under|em|en|para|a|como|no|na)|"
    rf"[^.;。]{{0,12}}?(?:到|至|为|成|在|:|=))?"
    r"\s*(?:the |the folder |o |a |el |la |folder |pasta |carpeta |arquivo |archivo |文件夹?|目录)?\s*$"
    r"|\b(?:output|outfile)\s*$|(?:->|=>|>|→|\binto)\s*$|(?:^|[^a-z])-o\s*$|输出到\s*$"
)
_PLAIN_TO = re.compile(r"(?:\bto|\bpara|\ba|到)\s*(?:the (?:file |folder )?)?$")
_NOT_TO = re.compile(
    r"(?:compar\w*|relative|close\w*|similar\w*|applied|according|next|respect|convert \w+|add(?:ed)?|"
    r"append\w*)\s+(?:\w+ )?to\s*$"
)
_AGAINST = re.compile(
    r"(?:against|similar\w* to|clos\w+ to|already in|not in|compar\w* (?:to|with|against)|versus|vs\.?|contra|ja "
    r"(?:esta\w*|existe\w*) em|ya (?:esta\w*|existe\w*) en|older (?:set|release|version)|previous "
    r"(?:release|set|version)|"
    r"overlap\w*(?: with)?|appears? in|present in|found in|contained in|seen in|"
    r"已(?:经)?(?:在|有)(?:的)?|对比|比对)\s*(?:the |o |a |os |as |el |la |los |las |our |old |file |"
    r"questions (?:of|in) |perguntas (?:de|do) )*\s*$"
)
_FROM = re.compile(
    r"(?:^|\b)(?:in|from|of|on|load|read|take|open|de|do|no|em|en|lee|le|carga|abre)\s+(?:the |o |el |file |arquivo |"
    r"archivo )*$|(?:从|在|读取|把|对)\s*$"
)
_HAN_WITH = re.compile(r"(?:与|和|跟)\s*$")
_HAN_SAME = re.compile(r"\s*(?:里|中)?(?:的|已有的)?[^,，。;]{0,6}(?:重复|重合|重叠|相同|一样|比较|对比|比对)")
_TARGET = re.compile(
    r"(?:\btarget(?:s|ing|ed)?|\baim\w*|\btowards?|\balvo|\bobjetivo|目标(?:集)?|为目标|以)\s*"
    r"(?:(?:set|dataset|data|conjunto|is|are|being|=|:|at|on|to|集|为|是|the|o|a|el|la|de|as|será|sera)\s*){0,4}$"
)
_TARGET_AFTER = re.compile(
    r"^\s*(?:set |split |\w+ )?(?:as|como|is|being|作为|为|当)\s*(?:a |the |o |el |nosso |our "
    r")*(?:target|alvo|objetivo|目标)"
)
_EVAL = re.compile(
    r"(?:eval\w*|test(?:e|s|ing)?(?: set| questions?)?|benchmark\w*|held-?out|validat\w*|"
    r"monitor\w*|(?:de-?contaminat|descontamin|leak|vaz|contamin)\w*[^.;]{0,24}(?:against|with|"
    r"from|contra|com|con|por)|评测集?|测试集?|验证集?|泄[漏露]|去污染?)\s*(?:is|are|against|with|on|"
    r"from|file|set|the|=|:|in|em|en|com|con|contra|de|del|do|no|na|是|为|与|和)*\s*(?:the |file |o |"
    r"a |el |la |set )*$"
)
_DELETE = re.compile(
    r"(?:delet\w*|eras\w*|remov\w*|rm -rf|wipe|apag\w*|borr\w*|elimin\w*|exclu\w*|删(?:除|"
    r"掉)?)\s*(?:the |a |o |la |el |file |folder |pasta |carpeta |arquivo |original |raw |目录|"
    r"文件夹?)*\s*$"
)
_COLUMN_BEFORE = re.compile(
    r"(?:columns?|fields?|colunas?|columnas?|campos?|by|por|列|字段|按|called|named)\s*(?:the "
    r"|o |a |el |la )?\s*[:=]?\s*$"
)
_COLUMN_AFTER = re.compile(r"^\s*(?:columns?|fields?|colunas?|columnas?|campos?|列|字段)")


@dataclass(frozen=True, slots=True)
class Source:
    """Data named by a request.

    Attributes:
        name: path as written, or name.
        purpose: what it is for.
        start: first character.
        end: one past the last.
        is_path: whether it is a path rather than a name.
        split: `dev`, `val`, `test`, `train` or empty.
        benchmark: whether it is a public evaluation set.
    """

    name: str
    purpose: Purpose
    start: int
    end: int
    is_path: bool = True
    split: str = ""
    benchmark: bool = False

    @property
    def key(self) -> str:
        """`gsm8k:test`, the form under which evaluation sets are registered."""
        return f"{self.name}:{self.split}" if self.split and not self.is_path else self.name


def sources(request: Request) -> tuple[Source, ...]:
    """Every path, data set name and benchmark of a request, in order."""
    found = [
        Source(span.text, _purpose(request, span.start, span.end), span.start, span.end, split=_split(span.text))
        for span in request.paths
    ]
    found += _named(request)
    found += _benchmarks(request)
    return tuple(sorted(found, key=lambda source: source.start))


def _purpose(request: Request, start: int, end: int) -> Purpose:
    text = request.masked
    sentence = request.sentence_at(start)
    before = text[max(sentence.start, start - 60) : start].rsplit(PATH, 1)[-1]
    after, name = text[end : end + 40], text_of(request, start, end)
    to = _PLAIN_TO.search(before) and not _NOT_TO.search(before) and _is_later_path(request, start)
    rules: tuple[tuple[Purpose, object], ...] = (
        ("target", _TARGET_AFTER.search(after) or _TARGET.search(before)),
        ("delete", _DELETE.search(before)),
        (
            "output",
            re.search(r"^(?:\./)?(?:out|outputs?|saida|salida|results?|exports?)/", name) and not _FROM.search(before),
        ),
        ("eval", _EVAL.search(before)),
        ("against", _HAN_WITH.search(before) and _HAN_SAME.match(after)),
        ("against", _AGAINST.search(before) or re.search(r"^\s*(?:里)?(?:已有|已经有|重复的)", after)),
        ("input", _is_object(before, after)),
        ("output", _OUTPUT_BEFORE.search(before) or to),
        ("eval", re.search(r"(?:^|[/_.-])(?:eval|test|dev|val|validation|heldout|benchmark)(?:[/_.-]|$)", name)),
    )
    return next((purpose for purpose, holds in rules if holds), "input")


def _is_object(before: str, after: str) -> bool:
    """`export prefs.jsonl as pairs`: the file is what is written from, not where to."""
    direct = re.search(
        (
            r"\b(?:export\w*|sav\w*|writ\w*|convert\w*|exporta\w*|salv\w*|guard\w*)\s+(?:the |o |el |"
            r"file )?$|(?:导出|转换)\s*$"
        ),
        before,
    )
    return (
        direct is not None
        and re.match(r"\s*(?:as|to|into|in|como|para|em|en|a|成|为|转)\b|\s*(?:成|为|转)", after) is not None
    )


def text_of(request: Request, start: int, end: int) -> str:
    """Folded text of a span, unmasked."""
    return request.folded[start:end]


def _is_later_path(request: Request, start: int) -> bool:
    return (
        any(span.start < start for span in request.paths)
        or re.search(r"\.(?:jsonl|json|csv|parquet)$", request.text) is not None
    )


def _split(name: str) -> str:
    folded = name.lower()
    for split, pattern in _SPLITS.items():
        if re.search(rf"(?:^|[/_.\s-])(?:{pattern})\w*(?:[/_.\s-]|$)", folded):
            return split
    return ""


def _named(request: Request) -> list[Source]:
    found = []
    for span in request.names:
        before, after = request.masked[max(0, span.start - 24) : span.start], request.masked[span.end : span.end + 16]
        if _COLUMN_BEFORE.search(before) or _COLUMN_AFTER.search(after):
            continue
        if re.search(
            rf"^\s*(?:,|and|e|y|和|与)\s*{NAME}+\s*(?:columns|colunas|columnas|两?列|字段)",
            request.masked[span.end : span.end + 40],
        ):
            continue
        if re.fullmatch(
            r"(?:benchmarks?|eval|dev|test|val)_?\w*|\w+_(?:dev|test|val|eval|validation)", span.text.lower()
        ):
            purpose = _purpose(request, span.start, span.end)
            purpose = purpose if purpose in {"target", "against"} else "eval"
        elif not re.search(
            r"(?:^|_)(?:demo|\w*sets?|\w*data|corpus|train|raw|web|wiki|chats?|code|news|zh|en|pt|es|v\d+|clean|pool|"
            r"dump)(?:_|$)",
            span.text.lower(),
        ):
            continue
        else:
            purpose = _purpose(request, span.start, span.end)
        found.append(
            Source(
                span.text, "input" if purpose == "output" else purpose, span.start, span.end, False, _split(span.text)
            )
        )
    return found


def _benchmarks(request: Request) -> list[Source]:
    text = request.masked
    found: dict[int, Source] = {}
    for match in _SPLIT_FIRST_RE.finditer(text):
        found[match.start()] = _benchmark(request, match)
    for pattern, is_benchmark in ((_BENCHMARK_RE, True), (_DATASET_RE, False)):
        for match in pattern.finditer(text):
            if not any(source.start <= match.start() < source.end for source in found.values()):
                source = _benchmark(request, match, is_benchmark)
                found[match.start()] = source
    return list(found.values())


def _benchmark(request: Request, match: re.Match[str], is_benchmark: bool = True) -> Source:
    name = (
        re.sub(r"[^a-z0-9]+", "_", match["name"])
        .strip("_")
        .replace("gsm_8k", "gsm8k")
        .replace("human_eval", "humaneval")
    )
    split = _split(match["split"] or "")
    start, end = match.start(), match.end()
    sentence = request.sentence_at(start)
    before = request.masked[max(sentence.start, start - 60) : start]
    if _TARGET_AFTER.search(request.masked[end : end + 40]) or _TARGET.search(before):
        return Source(name, "target", start, end, False, split, is_benchmark)
    if is_benchmark and split != "train":
        return Source(name, "eval", start, end, False, split, is_benchmark)
    return Source(
        name, _purpose(request, start, end) if not is_benchmark else "input", start, end, False, split, is_benchmark
    )


def model_name(request: Request) -> str | None:
    """The language model the request names, as written."""
    models = request.models
    return models[0].text if models else None


def is_masked_model(character: str) -> bool:
    """Whether a masked character belongs to a model's name."""
    return character == MODEL
