"""Secrets in texts: card numbers, bank accounts, passwords, seed phrases and keys, found by their form and their check digits. Pure.

They are never stored as a memory, and taken out of summaries. What people wrote stays in recall storage as they wrote it, until they
forget or delete it. Card and account numbers are judged by python-stdnum, keys by the forms that their vendors publish; the words by which
people announce a password are in `secrets.yaml`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

# Nothing that is seen: the likes of zero-width spaces, soft hyphens and byte order marks.
_UNSEEN = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
_DIGITS = re.compile(r"(?<![\w@#&])\d+(?:[ \t\n\r./_|·–—-]{1,3}\d+)*(?!\w)")
_ISSUED = re.compile(r"(?:[3-6]|2[2-7])\d{12,15}$|(?:5[06-8]|6)\d{15,18}$")
"""How the numbers of cards begin; those above 16 digits only where such are issued, as ids of messages and people are that long."""
_ACCOUNT = re.compile(r"\b[A-Za-z]{2}[ .-]?\d{2}(?:[ .\n/-]{0,2}[A-Za-z0-9]){11,30}")
_KEYS = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:(?!-----BEGIN).)*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)?"
    r"|---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----|PuTTY-User-Key-File-\d:|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}"
    r"|\bBEGIN (?:RSA |DSA |EC |OPENSSH |PGP |ENCRYPTED )?PRIVATE KEY\b"
    r"|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or|svcacct)?[-_]?(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{16,}"
    r"|\bsk-[A-Za-z]{20,}\b|\bsk-proj-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bgl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/T\w+/B\w+/\w+"
    r"|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}"
    r"|\b(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}|\bGOCSPX-[\w-]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
    r"|\b[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"
    r"|(?i:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,}={0,2}|\b\w{3}\dQ~[A-Za-z0-9_.~-]{31,34}"
    r"|\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{30,}|\b(?:AC|SK)[0-9a-f]{32}\b|\b\d{8,10}:[A-Za-z0-9_-]{35}\b|\bsq0(?:csp|atp)-[\w-]{22,}"
    r"|\b[0-9a-f]{32}-us\d{1,2}\b|\b(?:hf|npm|dckr_pat|shp(?:at|ca|pa|ss)|dop_v1|dapi|lin_api|figd|pul|rnd|re)_?(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{28,}"
    r"|\bpypi-[A-Za-z0-9_-]{40,}|//\S+/:_authToken=\S+"
    r"|\b(?i:bearer|basic)\s+(?=[A-Za-z._~+/-]*\d)[A-Za-z0-9._~+/-]{16,}=*",
    re.DOTALL,
)
_CLOUD = re.compile(
    r"(?i:aws|secret|azure|access|cloud|private[ _]?key|wireguard)[^\n]{0,60}?(?<![A-Za-z0-9/+])"
    r"(?P<value>(?=[A-Z0-9/+]*[a-z])(?=[a-z0-9/+]*[A-Z])(?=[A-Za-z/+]*\d)(?:[A-Za-z0-9/+]{43}=|[A-Za-z0-9/+]{40}))(?![A-Za-z0-9/+=])"
)
_ADDRESS = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@]{0,80}:(?P<value>[^\s/@]{1,200})@[\w\[.-]")
_SIGNS = r"@#$%^&*_+=~\\"
_LIKELY = rf"(?:(?=\S*[^\W\d_])(?=\S*[\d{_SIGNS}])|(?=\S*[^\W\d_][!?.,:;-]+\w*[{_SIGNS}\d!])|(?=\S*(?-i:[a-z][A-Z])))[^\s\"'”“»`<>]{{4,}}"
"""A word that nobody writes in a sentence: letters with digits or signs among them, or capitals within."""
_UNIT = r"[ ](?:k?m|cm|kg|miles|euros?|dollars?|people|years?|days?|Jahre|Tage|ans|años)\b"
_QUOTED = r"(?<=[\"“„«`'])[^\s\"'”“»`](?:[^\n\"”“»`]{2,60})(?=[\"”“»`'])"
_PHRASE = re.compile(r"(?:[a-z]{3,8}[ ,\n]+){11,23}[a-z]{3,8}")
_NUMBERED = re.compile(r"(?:\b\d{1,2}[.):]?\s*[a-z]{3,8}\b[\s,;]*){12,24}")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """the and for are was not have has his her she him they them their our from but its been were did does dont isnt who how would could
        than then these those which because when where your me my to of in is it""",
    )
)
"""Words of sentences that are no words of a seed phrase."""
_COUNTS = (12, 15, 18, 21, 24)


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret: what it is in words, and where it stands in the text."""

    kind: str
    start: int
    end: int


def secrets(text: str) -> list[Secret]:
    """The secrets in a text, in order."""
    plain, places = _seen(text)
    found = [
        *(("card number", *span) for span in _cards(plain)),
        *(("bank account", *span) for span in _accounts(plain)),
        *(("key", *match.span()) for match in _KEYS.finditer(plain)),
        *(("key", *match.span("value")) for match in _CLOUD.finditer(plain)),
        *(("password", *match.span("value")) for pattern in (_ADDRESS, *_announced()) for match in pattern.finditer(plain)),
        *(("seed phrase", *span) for span in _phrases(plain)),
    ]
    return sorted((Secret(kind, places[start], places[end - 1] + 1) for kind, start, end in found), key=lambda each: each.start)


def masked(text: str) -> str:
    """The text with each secret's kind in its place."""
    end, parts = 0, []
    for each in secrets(text):
        if each.start < end:
            continue
        parts += [text[end : each.start], f"[{each.kind} left out]"]
        end = each.end
    return "".join([*parts, text[end:]]) if parts else text


def _seen(text: str) -> tuple[str, list[int]]:
    """The text without what nobody sees, wide digits and odd spaces made plain, and where each character stood."""
    if text.isascii():
        return text, list(range(len(text)))
    kept = [
        (folded if len(folded := unicodedata.normalize("NFKC", character)) == 1 else character, place)
        for place, character in enumerate(text)
        if character not in _UNSEEN
    ]
    return "".join(character for character, _ in kept), [place for _, place in kept]


def _cards(text: str) -> Iterator[tuple[int, int]]:
    for run in _DIGITS.finditer(text):
        groups = list(re.finditer(r"\d+", run[0]))
        first = 0
        while first < len(groups):
            last = next((last for last in range(first, min(first + 19, len(groups))) if _card(run[0], groups, first, last)), None)
            if last is None:
                first += 1
                continue
            yield run.start() + groups[first].start(), run.start() + groups[last].end()
            first = last + 1


def _card(run: str, groups: list[re.Match[str]], first: int, last: int) -> bool:
    sizes = [len(group[0]) for group in groups[first : last + 1]]
    if not 13 <= sum(sizes) <= 19:
        return False
    if first and first == last and run[groups[first - 1].end() : groups[first].start()] == ".":
        return False  # digits after a decimal point
    # Dates and prices side by side are grouped otherwise than any card.
    regular = len(set(sizes[:-1])) <= 1 and sizes[-1] <= max(sizes) if len(sizes) > 1 else True
    if not regular and sizes not in ([4, 6, 5], [4, 6, 4]):
        return False
    digits = "".join(group[0] for group in groups[first : last + 1])
    return len(set(digits)) > 1 and _ISSUED.match(digits) is not None and _luhn(digits)


def _luhn(digits: str) -> bool:
    from stdnum import luhn

    return luhn.is_valid(digits)


def _accounts(text: str) -> Iterator[tuple[int, int]]:
    for match in _ACCOUNT.finditer(text):
        ends = [end for end in range(15, len(match[0]) + 1) if not match[0][end : end + 1].isalnum()]
        if (end := next((end for end in ends if _iban(match[0][:end])), None)) is not None:
            yield match.start(), match.start() + end


def _iban(written: str) -> bool:
    from stdnum import iban

    return iban.is_valid(re.sub(r"[\s/]", "", written), check_country=False)


def _phrases(text: str) -> Iterator[tuple[int, int]]:
    words = _lists()
    announced = re.search(rf"(?i)(?:{'|'.join(words['phrases'])})", text)
    for match in (*_PHRASE.finditer(text), *_NUMBERED.finditer(text)):
        said = re.findall(r"[a-z]{3,8}", match[0])
        alone = text[: match.start()].rpartition("\n")[2].strip() == "" and text[match.end() :].partition("\n")[0].strip() == ""
        if (announced and announced.start() < match.start()) or (
            alone and len(said) in _COUNTS and not _COMMON & set(said) and len(set(said)) > len(said) - 3
        ):
            yield match.span()


@cache
def _lists() -> dict[str, list[str]]:
    lists: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("secrets.yaml").read_text("utf-8"))
    return lists


@cache
def _announced() -> tuple[re.Pattern[str], ...]:
    """How people announce a password: `the password for the wifi is X`, `password X`, `password: X` alone in its line, `login ada / X`."""
    lists = _lists()
    word = rf"(?<![^\W_])(?:{'|'.join(lists['words'])})[^\W\d]{{0,6}}"
    joined = rf"(?:{'|'.join(lists['joined'])})"
    links = rf"(?:(?<!\w)(?:{'|'.join(lists['links'])})(?!\w)|\s[—–-]\s|->|=>|[:=：](?!//))"
    value = rf"(?P<value>{_QUOTED}|{_LIKELY}|\d{{3,12}}(?![%€$£\w]|[.,:]\d|{_UNIT}))"
    login = rf"(?<!\w)(?:{'|'.join(lists['logins'])})"
    return tuple(
        re.compile(pattern, re.IGNORECASE | re.MULTILINE)
        for pattern in (
            rf"{word}(?![\w])[^\n:=：]{{0,40}}?\s*{links}\s*[\"“„«`']?{value}",
            rf"{word}\s+[\"“„«`']?(?P<value>(?=\S*[^\W\d])(?=\S*\d)[^\s\"'”“»`<>]{{5,}}|\d{{4,8}}\b(?![ ]?\w))",
            rf"{word}(?: [^\n:=：]{{0,30}})?\s*[:=：]\s*(?P<value>[^\s\"'”“»`<>/]{{4,}})[ \t]*$",
            # Where words are not parted by spaces, what is written in Latin letters after it is what it is about.
            rf"{joined}[^\n!-~]{{0,12}}[\s:=「『\"“]*(?P<value>[!-~]{{4,}})",
            rf"{login}\s*[:=]?\s*[^\s/|:]{{2,40}}\s*[/|:,]\s*(?P<value>{_LIKELY})",
            rf"{login}\s*[:=]?\s*\S{{2,40}}[\s,;]+(?:{word}|pass|pw)\s*[:=]?\s*(?P<value>\S{{4,}})",
        )
    )
