"""What personal data looks like: one pattern and one check per kind.

Patterns are linear in the text (bounded repeats, anchored starts). A find counts only when its check passes: Luhn
and a known issuer for cards, both check digits for CPF, ISO 7064 MOD 11-2 with a real date and province for Chinese
identity numbers, a valid public address for IP. Phone numbers have no check digit, so a bare run of digits is a phone
number only in a national format that is unmistakable or after a word such as `tel`.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

Check = Callable[[re.Match[str]], bool]

_NOT_IN_NUMBER: Final = r"(?<![\w.])(?<!\d[,\-])"
_NO_MORE: Final = r"(?![\w%])(?![.,\-]\d)"
_CARD_LENGTHS: Final = (
    (re.compile("4"), {13, 16, 19}),
    (re.compile("5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), {16}),
    (re.compile("3[47]"), {15}),
    (re.compile("30[0-5]|3[689]"), {14, 16}),
    (re.compile("352[89]|35[3-8]"), {16}),
    (re.compile("6011|64[4-9]|65|62|606282|5067|4011"), {16, 17, 18, 19}),
    (re.compile("220[0-4]"), {16}),
)
_CN_PROVINCES: Final = frozenset(
    str(code)
    for codes in (range(11, 16), range(21, 24), range(31, 38), range(41, 47), range(50, 55), range(61, 66))
    for code in codes
) | {"71", "81", "82", "83"}
_CN_WEIGHTS: Final = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_PHONE_WORD: Final = (
    r"(?i:\b(?:tel(?:e(?:phone|fone|fono|f))?|phone|mobile|cell|call|fax|whatsapp|celular|m[oó]vil|fone|zap)\b"
    r"|电话|手机|致电|联系方式)"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A kind of personal data: the find is group `v` when there is one, else the whole match."""

    entity: str
    regex: re.Pattern[str]
    check: Check

    def span(self, match: re.Match[str]) -> tuple[int, int]:
        """Where the personal data itself stands."""
        return match.span("v") if "v" in self.regex.groupindex else match.span()


def digits_of(text: str) -> str:
    """The ASCII digits of `text`."""
    return "".join(character for character in text if character in "0123456789")


def luhn(number: str) -> bool:
    """Luhn check of a string of digits (ISO/IEC 7812-1, annex B)."""
    total = 0
    for index, character in enumerate(reversed(number)):
        value = int(character) * (1 + index % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def is_card(number: str) -> bool:
    """Whether digits are a payment card number: issuer range, length and Luhn."""
    known = any(prefix.match(number) and len(number) in lengths for prefix, lengths in _CARD_LENGTHS)
    return known and luhn(number) and len(set(number)) > 1


def is_cpf(number: str) -> bool:
    """Whether 11 digits are a CPF: both check digits by modulo 11, and not eleven times the same digit."""
    if len(number) != 11 or len(set(number)) == 1:
        return False
    for length in (9, 10):
        weighted = sum(int(digit) * (length + 1 - index) for index, digit in enumerate(number[:length]))
        if weighted * 10 % 11 % 10 != int(number[length]):
            return False
    return True


def is_cn_id(number: str) -> bool:
    """Whether 18 characters are a Chinese identity number (GB 11643-1999): province, birth date, check character."""
    if number[:2] not in _CN_PROVINCES:
        return False
    try:
        born = date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    rest = sum(int(digit) * weight for digit, weight in zip(number[:17], _CN_WEIGHTS, strict=True)) % 11
    return born.year >= 1850 and "10X98765432"[rest] == number[17].upper()


def is_address(text: str) -> bool:
    """Whether text is an IPv4 or IPv6 address of some machine (not loopback, not unspecified)."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _digits_check(check: Callable[[str], bool]) -> Check:
    return lambda match: check(digits_of(match.group()))


def _phone_check(match: re.Match[str]) -> bool:
    number = digits_of(match.group("v"))
    return 7 <= len(number) <= 15 and len(set(number[-8:])) > 2 and not number.endswith("000000")


def _sum_check(match: re.Match[str]) -> bool:
    """Refuse a term of a sum, such as `12 +3456789012` or `500-200-1000 =`, and what `_phone_check` refuses."""
    before = match.string[: match.start()].rstrip()[-1:]
    after = match.string[match.end() :].lstrip()[:1]
    is_bare = match.group("v").lstrip("+").isdigit()
    is_term = (before.isdigit() and is_bare) or before in {"=", ")"} or after in {"=", "*", "/"}
    return not is_term and _phone_check(match)


def _always(match: re.Match[str]) -> bool:
    return True


_PLAIN_PHONE: Final = (
    r"(?:86[ -]?)?1[3-9]\d(?:[ -]?\d{4}){2}"  # Chinese mobile, 11 digits
    r"|0\d{2,3}-\d{7,8}"  # Chinese landline
    r"|\(0?[1-9]{2}\) ?9? ?\d{4}[- ]?\d{4}"  # Brazil with area code in brackets
    r"|[1-9]{2} 9\d{4}-\d{4}"  # Brazilian mobile
    r"|\([2-9]\d{2}\) ?[2-9]\d{2}[-. ]\d{4}"  # North America
    r"|(?:1[-.])?[2-9]\d{2}(?P<s>[-.])[2-9]\d{2}(?P=s)\d{4}"
)

PATTERNS: Final = (
    Pattern(
        "email",
        re.compile(
            r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9_%+\-](?:[A-Za-z0-9._%+\-]{0,62}[A-Za-z0-9_%+\-])?"
            r"@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9\-])"
        ),
        _always,
    ),
    Pattern(
        "credit_card",
        re.compile(rf"{_NOT_IN_NUMBER}\d(?:[ \-]?\d){{12,18}}{_NO_MORE}"),
        _digits_check(is_card),
    ),
    Pattern("cn_id", re.compile(r"(?<![0-9A-Za-z])[1-9]\d{16}[\dXx](?![0-9A-Za-z])"), lambda m: is_cn_id(m.group())),
    Pattern(
        "cpf",
        re.compile(rf"{_NOT_IN_NUMBER}(?:\d{{3}}\.\d{{3}}\.\d{{3}}-\d{{2}}|\d{{9}}-?\d{{2}}){_NO_MORE}"),
        _digits_check(is_cpf),
    ),
    Pattern(
        "ip",
        re.compile(r"(?<![\w.])(?<![vV]ersion )(?<![vV]er )(?<!版本 )(?<!版本)(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)"),
        lambda match: is_address(match.group()),
    ),
    Pattern(
        "ip",
        re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f:]*\d)[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])"),
        lambda match: is_address(match.group()),
    ),
    Pattern("phone", re.compile(r"(?<![\w+])(?P<v>\+[1-9](?:[ .\-]?\(?\d{1,5}\)?){2,7})(?!\d)"), _sum_check),
    Pattern(
        "phone",
        re.compile(
            rf"(?<![0-9A-Za-z_$€£¥=<+*/.,\-])(?P<v>{_PLAIN_PHONE})"
            r"(?![0-9A-Za-z_=*/+%])(?![.,\-]\d)"
        ),
        _sum_check,
    ),
    Pattern(
        "phone",
        re.compile(rf"{_PHONE_WORD}[^\w+(]{{0,6}}(?P<v>\(?\d(?:[ .\-()]{{0,2}}\d){{6,14}})(?!\d)"),
        _phone_check,
    ),
)
"""In order of precedence: where two finds overlap, the earlier kind wins."""
