"""Secrets in texts: card numbers, bank accounts, passwords and keys, found by their form and their check digits. Pure.

They are never stored as a memory, and taken out of summaries. What people wrote stays in recall storage as they wrote it, until they
forget or delete it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CARD = re.compile(r"(?<![\d.,])\d(?:[ \u00a0\u2009\u202f-]?\d){12,18}(?![\d]|[.,]\d)")
_IBAN = re.compile(
    r"\b[A-Z]{2}\d{2}(?:[ \u00a0\u202f]?[A-Z0-9]{4}){2,7}(?:[ \u00a0\u202f]?[A-Z0-9]{1,4})?\b|\b[a-z]{2}\d{2}[a-z0-9]{11,30}\b"
)
_KEYS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?:(?!-----BEGIN).)*?-----END [A-Z ]*PRIVATE KEY-----)?"
    r"|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or|svcacct)?[-_]?[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
    r"|\b[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    re.DOTALL,
)
_PASSWORD = re.compile(
    r"(?i)\b(?:pass(?:word|phrase|code|wort)|pwd|kennwort|wachtwoord|has[łl]o|lösenord|şifre|пароль|"
    r"mot de passe|contrase(?:ñ|n)a|senha|pin(?:[- ](?:code|number|nummer))?|puk|api[- ]?key|"
    r"secret[- ]key|access[- ]token|cvv|cvc)\b[^\n:=]{0,40}?\s*(?:\bis\b|\bist\b|\blautet\b|\best\b|\bes\b|\bé\b|[:=])\s*[\"'“„«`]?"
    r"(?P<value>(?<=[\"“„«`])[^\s\"'”“»`](?:[^\n\"”“»`]{2,60})(?=[\"”“»`])|(?=[^\s\"'”“»`]*[\d!@#$%^&*_+=?-])[^\s\"'”“»`]{3,}|\d{3,8}\b)"
)


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret: what it is in words, and where it stands in the text."""

    kind: str
    start: int
    end: int


def secrets(text: str) -> list[Secret]:
    """The secrets in a text, in order."""
    found = [Secret("card number", *match.span()) for match in _CARD.finditer(text) if _luhn(match[0])]
    found += [Secret("bank account", *match.span()) for match in _IBAN.finditer(text) if _mod97(match[0])]
    found += [Secret("key", *match.span()) for match in _KEYS.finditer(text)]
    found += [Secret("password", *match.span("value")) for match in _PASSWORD.finditer(text)]
    return sorted(found, key=lambda each: each.start)


def masked(text: str) -> str:
    """The text with each secret's kind in its place."""
    end, parts = 0, []
    for each in secrets(text):
        if each.start < end:
            continue
        parts += [text[end : each.start], f"[{each.kind} left out]"]
        end = each.end
    return "".join([*parts, text[end:]]) if parts else text


def _luhn(written: str) -> bool:
    digits = [int(digit) for digit in written if digit.isdigit()]
    doubled = [digit if place % 2 == 0 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and sum(doubled) % 10 == 0


def _mod97(written: str) -> bool:
    plain = re.sub(r"\s", "", written)
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(letter, 36)) for letter in plain[4:] + plain[:4])) % 97 == 1
