"""Days that lie back, in the words of who asks about them, for searches. Pure; `memory.dates` reads what lies ahead."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import Final

from memory.date_words import pattern
from memory.dates import LONGEST
from memory.day_words import MONTH, month_of

_YEAR: Final = r"(?:,? (?:de |del |do )?(?P<year>(?:19|20)\d\d))"
_NAMED_DAYS: Final = (
    re.compile(r"(?<!\d)(?P<year>\d{4})-(?P<number>\d{2})-(?P<day>\d{2})(?!\d)"),
    re.compile(r"(?:(?P<year>\d{4})年)?(?P<number>\d{1,2})月(?:(?P<day>\d{1,2})[日号號])?"),
    pattern(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|º|\.)?(?: of| de)? (?P<month>{MONTH}){_YEAR}?"),
    pattern(rf"(?P<month>{MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_YEAR}?"),
    pattern(rf"(?P<month>{MONTH}){_YEAR}"),
    # A month alone is known by the word before it, as some are other words, too; short forms are (`gen`, `set`, `mar`).
    pattern(
        rf"(?:in|during|since|until|early|late|mid|last|of|im|seit|anfang|mitte|ende|en|au mois de|depuis|desde|nel|em|no mês de) "
        rf"(?=\w{{4}}|ma[iy]\b)(?P<month>{MONTH})"
    ),
)
"""Days and months by their names or numbers; a year may be missing."""
_BACK: Final = tuple(
    (re.compile(names) if names[0] > "z" else pattern(names), first, last)
    for names, first, last in (
        (r"day before yesterday|vorgestern|avant-hier|anteayer|l'altro ieri|anteontem", 2, 2),
        (r"yesterday|last night|gestern|ayer|ieri|ontem", 1, 1),
        (r"last week|letzte woche|la semaine dernière|la semana pasada|la settimana scorsa|na semana passada", 14, 1),
        (r"last month|letzten monat|le mois dernier|el mes pasado|il mese scorso|no mês passado", 60, 1),
        ("前天", 2, 2),
        ("昨天|昨日", 1, 1),
    )
)
"""Words for days before now: from so many days ago to so many."""
_ASKS_TIME: Final = re.compile(
    pattern(
        r"when|how long|(?:what|which) (?:dates?|day|week|month|year|time)|wann|wie lange|(?:an )?welche[mnrs]? (?:tag|woche|monat|jahr)|quand"
        r"|quel(?:le)? (?:date|jour|semaine|mois|année)|cuándo|cuánto tiempo|qué (?:fecha|día|semana|mes|año)|quando|quanto tempo"
        r"|(?:che|quale) (?:data|giorno|settimana|mese|anno)|(?:que|qual) (?:data|dia|semana|mês|ano)"
    ).pattern
    + "|什么时候|何时|哪[天年月]|几[月号]|いつ|언제",
    re.IGNORECASE,
)
"""A question for a time."""
TIME_WORDS: Final = " ".join(
    (
        "yesterday today tonight tomorrow ago recently since soon last next week weekend month year summer winter spring autumn fall",
        "monday tuesday wednesday thursday friday saturday sunday",
        "january february march april june july august september october november december",
        "gestern vorgestern heute morgen neulich woche wochenende monat jahr letzte letzten nächste montag dienstag mittwoch donnerstag freitag",
        "samstag sonntag januar februar märz mai juni juli oktober dezember",
        "aujourd'hui demain semaine mois année an dernier dernière lundi mardi mercredi jeudi vendredi samedi dimanche",
        "janvier février avril juin juillet août septembre octobre novembre décembre",
        "ayer hoy mañana semana mes año pasado pasada lunes martes miércoles jueves viernes sábado domingo",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ieri oggi domani settimana mese anno scorso scorsa lunedì martedì mercoledì giovedì venerdì sabato domenica",
        "gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre",
        "ontem hoje amanhã mês ano passado passada janeiro fevereiro março maio junho julho setembro outubro novembro dezembro",
        "昨天 今天 明天 前天 去年 今年 上周 下周 星期 周末 月份 昨日 先週 来週 어제 오늘 내일",
    )
)
"""Words of a message that tells a time."""


YEARS = 10
"""Years back that a day without a year may lie."""


def days_meant(text: str, today: date) -> list[tuple[date, date]]:
    """The days that a text about the past may mean, as first and last days: `yesterday`, `on 7 May 2023`, `in May` (of any year lately)."""
    text = text[:LONGEST].replace("’", "'")
    for names, first, last in _BACK:
        if names.search(text):
            return [(today - timedelta(days=first), today - timedelta(days=last))]
    for named in _NAMED_DAYS:
        if found := named.search(text):
            return _named(found.groupdict(), today)
    return []


def _named(found: dict[str, str | None], today: date) -> list[tuple[date, date]]:
    name, number, year_of, day = (found.get(part) or "" for part in ("month", "number", "year", "day"))
    month = month_of(name) if name else int(number)
    years = [int(year_of)] if year_of else range(today.year, today.year - YEARS, -1)
    spans = []
    for year in years:
        try:
            first = date(year, month, int(day or 1))
            last = first if day else first.replace(day=monthrange(year, month)[1])
        except ValueError:  # no such day
            continue
        if first <= today:
            spans.append((first, last))
    return spans


def asks_time(text: str) -> bool:
    """Whether a question asks for a time."""
    return _ASKS_TIME.search(text[:LONGEST]) is not None
