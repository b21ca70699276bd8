"""A request in the form the rules read: folded character by character, with names masked, cut into clauses.

Folding (lower case, accents and full-width forms gone) keeps one character for one character, so that every span
found in the folded text quotes the original. Names of files, addresses and quoted words are masked before operator
words are looked for: `dedup_train.jsonl` does not ask for deduplication.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from datamill.agents.rules.language import detect_language

PATH, URL, QUOTED, NAME, MODEL = "\ue000", "\ue001", "\ue002", "\ue003", "\ue004"
"""Private-use characters that stand for the characters of a masked name."""

_EXTENSION = (
    r"(?:jsonl|ndjson|json|csv|tsv|parquet|txt|arrow|feather|pdf|html?|warc|md|ya?ml|xlsx?|docx?|pptx?|xml|db|sqlite|"
    r"mp4|mkv|mov|avi|mp3|wav|flac|png|jpe?g|bin|zip|tar)(?:\.(?:gz|zst|bz2|xz))?"
)
_LATIN = r"A-Za-z0-9À-ÖØ-öø-ÿ"
_ROOTS = (
    r"data|datos|dados|dataset|datasets|out|output|outputs|saida|saidas|salida|salidas|resultado|resultados|raw|runs|"
    r"results|corpus|corpora|examples|models|tmp|home|etc|var|root|usr|mnt|shared|clean|processed|train|eval|docs|"
    r"papers|src|work|exports?"
)
_STOPS = r"\s,;:，。；：、!?！？\"'`“”‘’<>()（）"
"""Characters that end a path."""
_START = rf"(?<![{_LATIN}._/-])"
_PATH_RE = re.compile(
    rf"(?:{_START}(?:~|\.{{1,2}})?/(?:[^{_STOPS}]*[^{_STOPS}.])?/?)"
    rf"|(?:{_START}[A-Za-z]:\\[^\s,;，。；\"']+)"
    rf"|(?:{_START}[{_LATIN}_*][{_LATIN}_.\-*]*(?:/[{_LATIN}_.\-*一-鿿]+)*\.{_EXTENSION}(?![{_LATIN}_]))"
    rf"|(?:(?<![^\s\"'“‘「『：:，,])[一-鿿][一-鿿{_LATIN}_\-]*\.{_EXTENSION}(?![{_LATIN}_]))"
    rf"|(?:{_START}(?:{_ROOTS})(?:/[{_LATIN}_.\-*]*[{_LATIN}_*])*"
    rf"/(?:[{_LATIN}_*][{_LATIN}_.\-*]*[{_LATIN}_*])?(?![{_LATIN}_]))"
    rf"|(?:{_START}[{_LATIN}_][{_LATIN}_.\-]*(?:/[{_LATIN}_.\-]+)*/(?=[\s,;，。；]|$))",
    re.IGNORECASE,
)
_URL_RE = re.compile(
    (
        r"(?:https?|ftp|s3|gs|hf|ssh|sftp|azure|hdfs|postgres(?:ql)?|"
        r"mysql)://[^\s,;，。；、)）\"'“”]+|www\.[^\s,;，。；、]+"
    ),
    re.IGNORECASE,
)
_QUOTED_RE = re.compile(
    r"\"[^\"\n]{1,60}\"|“[^”\n]{1,60}”|`[^`\n]{1,60}`|「[^」\n]{1,60}」"
    r"|(?<![\w])'[^'\n]{1,60}'(?!\w)|«[^»\n]{1,60}»"
)
_NAME_RE = re.compile(r"(?<![A-Za-z0-9_./-])[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?![A-Za-z0-9_/])")
_FAMILIES = (
    r"code-?qwen|tiny-?qwen|qwen|tiny-?llama|code-?llama|llama|smollm|mistral|mixtral|ministral|gemma|phi-?\d|deepseek|"
    r"yi-\d|baichuan|internlm|chatglm|glm-?\d|pythia|gpt-?neo|gpt-?j|gpt-?2|olmo|falcon|bloomz?|opt-\d|minicpm|"
    r"stablelm|bert|roberta|bge|e5|sabia|tucano"
)
_MODEL_RE = re.compile(
    rf"(?<![A-Za-z0-9_./-])(?:[A-Za-z][\w.-]*/)?(?:{_FAMILIES})(?!-?factory|-?lab|-?cpp)"
    r"(?:[A-Za-z0-9.\-]*[A-Za-z0-9])?(?:[- ]v?\d+(?:\.\d+)*(?![\d.]*\s?[%BbMm]))?"
    r"(?:[ -]\d+(?:\.\d+)?\s?[BbMm](?![A-Za-z]))?(?:[- ](?:instruct|base|chat|it)\b)?",
    re.IGNORECASE,
)
_ENCODING_RE = re.compile(
    r"(?<![A-Za-z0-9])(?:latin[- ]?1|iso[- ]?8859-?1\d?|cp-?125\d|windows-125\d|utf[- ]?(?:8|16)"
    r"|gb(?:k|2312|18030)|big5|shift[-_]jis)(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_BREAK_RE = re.compile(r"[;!?\n。]|[.](?=\s|$)|,(?!\d)|(?<=\D),|:(?=\s)|\)|\(")
_SENTENCE_RE = re.compile(r"[;!?\n。]|[.](?=\s|$)")
_PUNCTUATION = {
    "、": ",", "。": "。", "→": ">", "“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "−": "-",
}  # fmt: skip


def fold(text: str) -> str:
    """Lower case without accents or full-width forms, one character for each character of `text`.

    >>> fold("Não，ＡＢＣ")
    'nao,abc'
    """
    return "".join(_fold_character(character) for character in text)


def _fold_character(character: str) -> str:
    if character in _PUNCTUATION:
        return _PUNCTUATION[character]
    plain = unicodedata.normalize("NFKD", character)
    plain = next((part for part in plain if not unicodedata.combining(part)), character)
    return (plain.lower() or plain)[0]


@dataclass(frozen=True, slots=True)
class Span:
    """A named piece of the request: `[start, end)` in characters."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Request:
    """A request ready for the rules.

    Attributes:
        text: as written, secrets already removed, in NFC.
    """

    text: str

    @cached_property
    def language(self) -> str:
        """`en`, `zh`, `pt` or `es`."""
        return detect_language(self.folded, self.text)

    @cached_property
    def folded(self) -> str:
        """Folded text, same length as `text`."""
        return fold(self.text)

    @cached_property
    def urls(self) -> tuple[Span, ...]:
        """Web and storage addresses."""
        return _spans(_URL_RE, self.text)

    @cached_property
    def quoted(self) -> tuple[Span, ...]:
        """Quoted words, marks excluded from their text; a quoted path counts as a path."""
        found = []
        for span in _spans(_QUOTED_RE, self.text):
            inner = span.text[1:-1].strip()
            if not _PATH_RE.fullmatch(inner):
                found.append(Span(span.start, span.end, inner))
        return tuple(found)

    @cached_property
    def paths(self) -> tuple[Span, ...]:
        """File and folder names."""
        taken = _blank(self.text, self.urls, " ")
        return tuple(span for span in _spans(_PATH_RE, taken) if _looks_like_path(span.text))

    @cached_property
    def names(self) -> tuple[Span, ...]:
        """Identifiers with underscores that are no paths: data sets, columns, models."""
        taken = _blank(_blank(self.text, self.urls, "/"), self.paths, "/")
        return _spans(_NAME_RE, taken)

    @cached_property
    def models(self) -> tuple[Span, ...]:
        """Names of language models, with their size."""
        taken = _blank(_blank(self.text, self.urls, "/"), self.paths, "_")
        return _spans(_MODEL_RE, taken)

    @cached_property
    def encodings(self) -> tuple[Span, ...]:
        """Names of character encodings."""
        return _spans(_ENCODING_RE, self.text)

    @cached_property
    def masked(self) -> str:
        """Folded text with paths, addresses, quotes and identifiers replaced by private-use characters."""
        text = self.folded
        marks = (
            (self.quoted, QUOTED), (self.encodings, NAME), (self.names, NAME), (self.models, MODEL),
            (self.paths, PATH), (self.urls, URL),
        )  # fmt: skip
        for spans, mark in marks:
            text = _blank(text, spans, mark)
        return text

    @cached_property
    def readable(self) -> str:
        """As `masked`, but identifiers with underscores stay: they may be columns."""
        text = _blank(_blank(self.folded, self.quoted, QUOTED), self.models, MODEL)
        return _blank(_blank(text, self.paths, PATH), self.urls, URL)

    @cached_property
    def clauses(self) -> tuple[Span, ...]:
        """Pieces between commas and stronger marks, in order; they cover the whole text."""
        return _cut(self.masked, _BREAK_RE)

    @cached_property
    def sentences(self) -> tuple[Span, ...]:
        """Pieces between full stops, semicolons and line ends."""
        return _cut(self.masked, _SENTENCE_RE)

    def clause_at(self, position: int) -> Span:
        """The clause around `position`."""
        return next((clause for clause in self.clauses if clause.start <= position < clause.end), self.clauses[-1])

    def sentence_at(self, position: int) -> Span:
        """The sentence around `position`."""
        return next((piece for piece in self.sentences if piece.start <= position < piece.end), self.sentences[-1])

    def quote(self, start: int, end: int) -> str:
        """The words of the request around a span, whole clause, at most 80 characters."""
        clause = self.clause_at(start)
        words = self.text[clause.start : max(end, clause.end)].strip(" ,;.，。；、")
        return words if len(words) <= 80 else self.text[start:end].strip()


def _spans(pattern: re.Pattern[str], text: str) -> tuple[Span, ...]:
    return tuple(Span(match.start(), match.end(), match.group()) for match in pattern.finditer(text))


def _blank(text: str, spans: tuple[Span, ...], mark: str) -> str:
    characters = list(text)
    for span in spans:
        characters[span.start : span.end] = mark * (span.end - span.start)
    return "".join(characters)


def _cut(text: str, pattern: re.Pattern[str]) -> tuple[Span, ...]:
    pieces, start = [], 0
    for match in pattern.finditer(text):
        if match.end() > start:
            pieces.append(Span(start, match.end(), text[start : match.end()]))
            start = match.end()
    pieces.append(Span(start, len(text) + 1, text[start:]))
    return tuple(pieces)


def _looks_like_path(text: str) -> bool:
    """Ratios and short forms with slashes (`90/5/5`, `q/a`, `w/`) are no paths; neither is a lone slash."""
    sides = r"(?:train(?:ing)?|val(?:id(?:ation)?)?|test|dev|eval)"
    if re.fullmatch(rf"(?:/[一-鿿]+)+|{sides}(?:/{sides})+", text, re.IGNORECASE):
        return False
    if re.fullmatch(r"[\d./]+|[/.~]+", text):
        return text.startswith("..") and "/" in text
    return (
        re.fullmatch(r"[A-Za-z]/[A-Za-z]?|robots\.txt|requirements\.txt|README\.md|.*\.ya?ml", text, re.IGNORECASE)
        is None
    )
