"""The words of time in six languages, as `memory.dates` looks for them: lengths of time and the clock. Patterns and tables alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Final

LANGUAGES: Final = ("en", "de", "fr", "es", "it", "pt")


def pattern(text: str) -> re.Pattern[str]:
    """A pattern of whole words; a blank stands for any blanks."""
    return re.compile(rf"(?<!\w)(?:{text})(?!\w)".replace(" ", r"\s+"), re.IGNORECASE)


# Numbers and units -----------------------------------------------------------------------------------

_NUMBERS: Final = (
    "zero",
    "a|an|one|ein|eine|einer|einem|einen|un|une|uno|una|um|uma",
    "two|a couple of|zwei|deux|dos|due|dois|duas",
    "three|drei|trois|tres|tre|três",
    "four|vier|quatre|cuatro|quattro|quatro",
    "five|fünf|fuenf|funf|cinq|cinco|cinque",
    "six|sechs|seis|sei",
    "seven|sieben|sept|siete|sette|sete",
    "eight|acht|huit|ocho|otto|oito",
    "nine|neun|neuf|nueve|nove",
    "ten|zehn|dix|diez|dieci|dez",
)
_BY_WORD: Final = {word: number for number, names in enumerate(_NUMBERS) for word in names.split("|")} | {
    **dict.fromkeys(("twelve", "zwölf", "zwoelf", "zwolf", "douze", "doce", "dodici", "doze"), 12),
    **dict.fromkeys(("fifteen", "fünfzehn", "fuenfzehn", "funfzehn", "quinze", "quince", "quindici"), 15),
    **dict.fromkeys(("twenty", "zwanzig", "vingt", "veinte", "venti", "vinte"), 20),
    **dict.fromkeys(("thirty", "dreißig", "dreissig", "trente", "treinta", "trenta", "trinta"), 30),
    **dict.fromkeys(("forty-five", "fünfundvierzig", "quarante-cinq", "quarantacinque"), 45),
}
NUMBER: Final = rf"\d{{1,4}}(?:[.,]\d)?|(?:{'|'.join(sorted(_BY_WORD, key=len, reverse=True))})(?!\w)"
_UNITS: Final = (
    (1, r"s|secs?|seconds?|sekunden?|sek|secondes?|segundos?|second[oi]"),
    (60, r"m|mins?|minutes?|minuten?|minutos?|minut[oi]"),
    (3600, r"h|hrs?|hours?|stunden?|std|heures?|horas?|or[ae]"),
    (86_400, r"d|days?|tag|tage|tagen|jours?|días?|dias?|giorn[oi]"),
    (604_800, r"w|weeks?|wochen?|semaines?|semanas?|settiman[ae]"),
    (2_592_000, r"months?|monate?n?|mois|mes|meses|mes[ei]|mês"),
    (31_536_000, r"years?|jahre?n?|ans|années?|años?|ann[oi]|anos?"),
)
UNIT: Final = "|".join(names for _, names in _UNITS)
_IN: Final = r"in|after|within|nach|dans|d'ici|en|dentro de|tra|fra|em|daqui a|'t"


def number_of(word: str) -> float:
    """A number in figures or words."""
    known = _BY_WORD.get(" ".join(word.casefold().split()))
    return float(word.replace(",", ".")) if known is None else float(known)


def unit_of(word: str) -> float:
    """Seconds of a unit; a month has 30 days."""
    return next(float(seconds) for seconds, names in _UNITS if re.fullmatch(names, word, re.IGNORECASE))


_HALF: Final = r" and a half| et demie?| y media| e mezzo| e mezza| e meia"
SPAN: Final = pattern(
    rf"(?:{_IN}) (?:about |etwa |ca\. |environ |unos |circa |cerca de )?(?P<n>{NUMBER})\s*(?P<unit>{UNIT})(?P<half>{_HALF})?"
    rf"(?P<more>(?:,? (?:and |und |et |y |e )?(?:{NUMBER})\s*(?:{UNIT}))*)"
)
FROM_NOW: Final = pattern(
    rf"(?P<n>{NUMBER})\s*(?P<unit>{UNIT})(?P<half>{_HALF})?(?P<more>) (?:from (?:now|today)|ab (?:jetzt|heute)|à partir de maintenant"
    r"|desde ahora|a partir de ahora|da adesso|da ora|a partir de agora)"
)
HALVES: Final = pattern(rf"(?:{_IN}) (?P<n>{NUMBER}) and a half (?P<unit>{UNIT})(?P<half>)(?P<more>)")
"""`in two and a half hours`."""
HOURS_MINUTES: Final = pattern(
    rf"(?:{_IN}) (?P<h>\d{{1,2}})\s*(?:h|:)\s*(?P<m>\d{{2}})(?: hours| stunden| heures| horas| ore)?(?! ?(?:{UNIT})\b)"
)
"""`in 2h30`."""
MORE: Final = pattern(rf"(?P<n>{NUMBER})\s*(?P<unit>{UNIT})")
SPANS: Final = tuple(
    (pattern(text), seconds)
    for text, seconds in (
        (
            rf"(?:{_IN}) (?:half an hour|a half hour|einer halben stunde|'ner halben stunde|une demi-heure|media hora|mezz'ora"
            rf"|mezzora|meia hora)",
            1800,
        ),
        (rf"(?:{_IN}) (?:an hour and a half|one and a half hours|anderthalb stunden|eineinhalb stunden|un'ora e mezza)", 5400),
        (rf"(?:{_IN}) (?:zweieinhalb stunden)", 9000),
        (
            rf"(?:{_IN}) (?:a quarter of an hour|einer viertelstunde|un quart d'heure|un cuarto de hora|un quarto d'ora|um quarto de hora)",
            900,
        ),
        (rf"(?:{_IN}) (?:an|un'|un )\s*(?:hour|ora)", 3600),
        (rf"(?:{_IN}) (?:a fortnight)", 1_209_600),
        (r"half an hour from now", 1800),
    )
)

# The clock -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the day: its usual time, and from which hour up to twelve an hour is one of the second half of the day (0: none)."""

    usual: time
    late_from: int = 0

    def hour(self, hour: int) -> int:
        """An hour as this part of the day means it: `tonight at 12` is midnight, `at 2 at night` is in the small hours."""
        if not self.late_from or hour > 12 or (hour == 12 and self.late_from == 1):
            return hour
        return hour % 12 + (12 if self.late_from <= hour < 12 else 0)


_MORNING, _AFTERNOON, _EVENING, _NIGHT = Part(time(9)), Part(time(15), 1), Part(time(19), 5), Part(time(21), 5)
_PARTS: Final = (
    (
        r"(?:in the |this |am )?mornings?|am morgen|früh|vormittags?|am vormittag|(?:ce |le )?matin|(?:de|por) la mañana|(?:di "
        r"|questa )?mattina|(?:de|da|pela) manhã",
        _MORNING,
    ),
    (
        r"(?:in the |this )?afternoons?|(?:am )?nachmittags?|(?:de |cet |l')?après-midi|(?:de|por) la tarde|(?:di "
        r"|questo )?pomeriggio|(?:de|da|à) tarde",
        _AFTERNOON,
    ),
    (
        r"(?:in the |this )?evenings?|tonight|(?:am )?abends?|(?:ce |le |du )?soir|esta noche|(?:de|por) la noche|(?:di "
        r"|questa )?sera|stasera|(?:de|da|à|esta) noite|at night|nachts",
        _EVENING,
    ),
)
EACH_PART: Final = (
    (r"mornings?|morgen|vormittag|matins?|mañanas?|mattin[ae]|manhãs?", _MORNING),
    (r"afternoons?|nachmittag|après-midi|tardes?|pomeriggi[o]?", _AFTERNOON),
    (r"evenings?|abend|soirs?|ser[ae]", _EVENING),
    (r"nights?|nacht|nuits?|noches?|nott[ei]|noites?", _NIGHT),
)
_ANY_PART: Final = "|".join(f"(?:{names})" for names, _ in _PARTS)
PART: Final = pattern(_ANY_PART)
CLOCKS: Final = (
    (pattern(r"(?:at |um |à |a )?(?:noon|midday|mittags?|midi|mediodía|mezzogiorno|al mediodía|meio-dia|ao meio-dia)"), time(12)),
    (pattern(r"(?:at |um |à |a )?(?:midnight|mitternacht|minuit|medianoche|mezzanotte|meia-noite)"), time(0)),
)
_AT: Final = r"at|by|for|um|gegen|à|vers|a las|a la|alle|all'|às|as|à"
_HOURS_BY_WORD: Final = {**_BY_WORD, "eleven": 11, "elf": 11, "once": 11, "undici": 11, "onze": 11, "sieben": 7, "eins": 1}
_ARTICLES: Final = frozenset(["a", "an", "ein", "eine", "einer", "einem", "einen", "un", "une", "uno", "una", "um", "uma"])
_HOUR_WORDS: Final = "|".join(
    sorted((word for word, n in _HOURS_BY_WORD.items() if 0 < n <= 12 and word not in _ARTICLES), key=len, reverse=True)
)
_HOUR: Final = rf"(?P<h>\d{{1,2}}|{_HOUR_WORDS})"
_WORD: Final = r"[a-zäöüßçêàéèù]+"
HALF: Final = pattern(rf"(?:(?:at|um|by|gegen) )?(?:half past (?P<h>\d{{1,2}}|{_WORD})|halb (?P<before>\d{{1,2}}|{_WORD}))")
MINUTES: Final = pattern(
    rf"(?:(?:at|um|by|gegen) (?P<m>\d{{1,2}}|five|ten|twenty|fünf|zehn|zwanzig)|(?P<m2>\d{{1,2}}|five|ten|twenty|fünf|zehn|zwanzig) (?:minutes?"
    rf"|minuten)) (?P<way>past|to|nach|vor) (?P<h>\d{{1,2}}|{_WORD})"
)
FRACTIONS: Final = tuple(
    (pattern(names), minutes)
    for names, minutes in (
        (r"et demie?|y media|e mezza|e mezzo|e meia", 30),
        (r"et quart|y cuarto|e un quarto|e um quarto|e quinze", 15),
        (r"moins le quart|menos cuarto|meno un quarto|menos um quarto", -15),
    )
)
"""What follows an hour in four languages."""
QUARTER: Final = pattern(
    rf"(?:(?:at|um|by|gegen) )?(?:a )?(?P<way>quarter past|quarter to|viertel nach|viertel vor) (?P<h>\d{{1,2}}|{_WORD})"
)
MERIDIEM: Final = pattern(rf"(?:(?:{_AT}) )?(?P<h>\d{{1,2}})(?:[:.](?P<m>\d{{2}}))?\s*(?P<meridiem>[ap])\.?\s?m\.?")
HOURS: Final = pattern(
    rf"(?:(?:{_AT})\s*)?(?P<h>\d{{1,2}})\s*(?:h|uhr|heures?|horas|ore|o'clock)\s*(?P<m>\d{{2}})?"
    rf"|(?:(?:{_AT}) )?{_HOUR.replace('<h>', '<w>')} o'clock"
)
TIME: Final = pattern(rf"(?:(?:{_AT})\s*)?(?P<h>\d{{1,2}})[:.](?P<m>\d{{2}})(?: uhr|h)?(?![.\d/])")
HOUR: Final = pattern(
    rf"(?:at|um|gegen|à|vers|a las|a la|alle|all'|às)\s*{_HOUR}(?!\s*(?:[./:-]\s?\d|%|€|\$|(?:{UNIT})\b))"
    r"|(?:a la|all'|à)\s*(?P<one>una|uma|une(?: heure)?)(?! \w)"
    rf"|as\s*(?P<w>\d{{1,2}})(?!\s*(?:[./:-]\s?\d|%|€|\$|(?:{UNIT})\b))"
)
BEFORE_PART: Final = pattern(rf"(?:(?:{_AT}) )?{_HOUR}(?= (?:{_ANY_PART}))")
"""`5 in the afternoon`."""


def part_of(word: str) -> Part:
    """A part of the day by its words."""
    return next(part for names, part in _PARTS if re.fullmatch(names.replace(" ", r"\s+"), word, re.IGNORECASE))


def each_part_of(word: str) -> Part:
    """A part of the day as it is named behind `every`."""
    return next(part for names, part in EACH_PART if re.fullmatch(names, word, re.IGNORECASE))


def _hour_named(word: str) -> int | None:
    if word.isdecimal():
        return int(word)
    number = _HOURS_BY_WORD.get(word.casefold())
    return number if number is not None and number <= 12 else None


def clock_of(found: re.Match[str], part: Part | None) -> time | int | None:
    """The time of a clock pattern's match; one that may be in either half of the day as minutes; None: there is no such time."""
    groups = {name: value for name, value in found.groupdict().items() if value}
    name = next((each for each in ("h", "w", "one", "before") if each in groups), "")
    hour = 1 if name == "one" else _hour_named(groups[name]) if name else None
    if hour is None or hour > 24:
        return None
    minute = _minute(found, groups)
    if (meridiem := groups.get("meridiem", "").casefold()) and hour <= 12:
        hour = hour % 12 + (12 if meridiem == "p" else 0)
    elif part is not None:
        hour = part.hour(hour)
    elif hour <= 12 and (found.re in (HOUR, HALF, QUARTER, MINUTES) or "o'clock" in found[0].casefold()):
        return (hour * 60 + minute) % 1440
    return time(*divmod((hour * 60 + minute) % 1440, 60)) if minute < 60 else None


def _minute(found: re.Match[str], groups: Mapping[str, str]) -> int:
    """Minutes after the named hour; before it where they are negative."""
    way = groups.get("way", "").casefold()
    if found.re is HALF:
        return -30 if "before" in groups else 30
    if found.re is QUARTER:
        return -15 if way in ("quarter to", "viertel vor") else 15
    if found.re is MINUTES:
        minutes = round(number_of(groups.get("m") or groups["m2"]))
        return -minutes if way in ("to", "vor") else minutes
    return int(groups.get("m", 0))
