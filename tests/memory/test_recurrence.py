"""Rules of RFC 5545: which are taken, that each of those can be reckoned at once, and how they are said in six languages."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from bot.speaking.saying import repeats
from memory.recurrence import following, parsed

FIRST = datetime(2026, 12, 1, 8)  # noqa: DTZ001 - a wall time; a Tuesday
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def times(every: str, count: int, zone: str = "Europe/Berlin", first: datetime = FIRST, now: datetime = NOW) -> list[str]:
    found: list[str] = []
    due: datetime | None = now
    while due is not None and len(found) < count and (due := following(first, zone, parsed(every), due)) is not None:
        found.append(f"{due.astimezone(UTC):%Y-%m-%d %H:%M}")
    return found


@pytest.mark.parametrize(
    ("every", "dues"),
    [
        ("weekdays", ["2026-12-01 07:00", "2026-12-02 07:00", "2026-12-03 07:00", "2026-12-04 07:00", "2026-12-07 07:00"]),
        ("FREQ=WEEKLY;INTERVAL=2", ["2026-12-01 07:00", "2026-12-15 07:00"]),
        ("FREQ=MONTHLY;BYDAY=-1FR", ["2026-12-25 07:00", "2027-01-29 07:00"]),
        ("FREQ=MONTHLY;BYDAY=+1MO", ["2026-12-07 07:00", "2027-01-04 07:00"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", ["2026-12-31 07:00", "2027-01-31 07:00", "2027-02-28 07:00"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["2026-12-31 07:00", "2027-01-29 07:00"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", ["2028-02-29 07:00", "2032-02-29 07:00"]),
        ("rrule:freq=daily;count=2", ["2026-12-01 07:00", "2026-12-02 07:00"]),
        ("FREQ=DAILY;UNTIL=20261202", ["2026-12-01 07:00", "2026-12-02 07:00"]),
        ("FREQ=DAILY;UNTIL=20261202T070000Z", ["2026-12-01 07:00"]),
        ("every day", ["2026-12-01 07:00", "2026-12-02 07:00"]),
        ("none", ["2026-12-01 07:00"]),
        ("", ["2026-12-01 07:00"]),
    ],
)
def test_when_it_comes(every: str, dues: list[str]) -> None:
    assert times(every, len(dues)) == dues
    if {"COUNT", "UNTIL"} & set(parsed(every).replace("=", ";").split(";")) or not parsed(every):
        assert times(every, len(dues) + 1) == dues, "it ends"


@pytest.mark.parametrize(
    "every",
    [
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=-1",
        "FREQ=DAILY;INTERVAL=99999999",
        "FREQ=DAILY;INTERVAL=7;BYDAY=WE",
        "FREQ=YEARLY;INTERVAL=6",
        "FREQ=DAILY;COUNT=0",
        "FREQ=DAILY;COUNT=99999999",
        "FREQ=DAILY;COUNT=\N{FULLWIDTH DIGIT THREE}",
        "FREQ=DAILY;COUNT=3;UNTIL=20261224",
        "FREQ=DAILY;UNTIL=20261324",
        "FREQ=DAILY;UNTIL=soon",
        "FREQ=DAILY;BYMONTHDAY=30;BYMONTH=2",
        "FREQ=DAILY;BYMONTHDAY=99",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTH=4,6;BYMONTHDAY=31",
        "FREQ=WEEKLY;BYDAY=MO;BYSETPOS=5",
        "FREQ=MONTHLY;BYDAY=5MO",
        "FREQ=WEEKLY;BYDAY=1MO",
        "FREQ=DAILY;BYDAY=XX",
        "FREQ=HOURLY",
        "FREQ=MINUTELY",
        "FREQ=SECONDLY",
        "FREQ=DAILY;BYHOUR=8",
        "INTERVAL=2",
        "FREQ=DAILY\nDTSTART:20200101T000000",
        "hourly",
        "FREQ=DAILY;" * 30,
    ],
)
def test_what_could_never_come_or_not_be_said_is_refused_with_what_to_write(every: str) -> None:
    with pytest.raises(ValueError, match="Give day, week, month, year, weekdays, or a rule such as"):
        parsed(every)


def test_whatever_is_taken_is_reckoned_at_once() -> None:
    """One rule without an end to its search would stop every person's timers, as they are reckoned in the process's one thread."""
    names = {
        "FREQ": ("DAILY", "WEEKLY", "MONTHLY", "YEARLY"),
        "INTERVAL": ("", "2", "7", "60", "260", "1830"),
        "BYDAY": ("", "TU", "SA,SU", "-1FR", "MO,TU,WE,TH,FR"),
        "BYMONTHDAY": ("", "29", "31", "-1", "1,15"),
        "BYMONTH": ("", "2", "6,7"),
        "COUNT": ("", "3"),
    }
    taken, slowest = 0, (0.0, "")
    for values in product(*names.values()):
        rule = ";".join(f"{name}={value}" for name, value in zip(names, values, strict=True) if value)
        try:
            every = parsed(rule)
        except ValueError:
            continue
        began = time.process_time()
        for now in (NOW, NOW + timedelta(days=3 * 365)):
            following(FIRST, "Europe/Berlin", every, now)
        slowest = max(slowest, (time.process_time() - began, rule))
        taken += 1
        assert "=" not in repeats(every, FIRST, "en"), "in words, not in a rule's letters"
    assert taken > 150
    assert slowest[0] < 1.0, slowest


SAID = {
    "en": ["every year on 1 Dec at 08:00", "on the first Monday of the month and on the last Sunday of the month at 08:00"],
    "de": ["jedes Jahr am 1. Dezember um 08:00", "am ersten Montag im Monat und am letzten Sonntag im Monat um 08:00"],
    "fr": ["chaque année le 1 décembre à 08:00", "le premier lundi du mois et le dernier dimanche du mois à 08:00"],
    "es": ["cada año el 1 de diciembre a las 08:00", "el primer lunes del mes y el último domingo del mes a las 08:00"],
    "it": ["ogni anno il 1 dicembre alle 08:00", "il primo lunedì del mese e l'ultima domenica del mese alle 08:00"],
    "pt": ["todos os anos a 1 de dezembro às 08:00", "na primeira segunda-feira do mês e no último domingo do mês às 08:00"],
}


@pytest.mark.parametrize("locale", SAID)
def test_it_is_said_in_words(locale: str) -> None:
    assert [repeats(every, FIRST, locale) for every in ("year", "FREQ=MONTHLY;BYDAY=1MO,-1SU")] == SAID[locale]


@pytest.mark.parametrize(
    ("every", "said"),
    [
        ("FREQ=MONTHLY;BYMONTHDAY=1,-1", "every month on day 1 and on the last day at 08:00"),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "on the last weekday of the month at 08:00"),
        ("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", "every year on the last Sunday of the month (Mar) at 08:00"),
        ("FREQ=WEEKLY;BYDAY=MO;BYMONTH=6,7;COUNT=4", "every Monday (Jun and Jul) at 08:00, 4 times"),
        ("FREQ=DAILY;UNTIL=20280101", "every day at 08:00, until Saturday 1 Jan 2028"),
        ("FREQ=DAILY;UNTIL=20270101", "every day at 08:00, until Friday 1 Jan"),
    ],
)
def test_and_so_are_the_rarer_ones(every: str, said: str) -> None:
    assert repeats(parsed(every), FIRST, "en") == said


def test_the_29th_of_february_every_year_is_the_28th_in_others() -> None:
    first = datetime(2028, 2, 29, 8)  # noqa: DTZ001 - a wall time
    assert times("year", 2, "UTC", first) == ["2028-02-29 08:00", "2029-02-28 08:00"]


@pytest.mark.parametrize("every", ["day", "FREQ=DAILY"])
def test_a_skipped_and_a_doubled_hour(every: str) -> None:
    """In Berlin on 28 March 2027 there is no 02:30, and on 31 October there are two."""
    for day, dues in (
        (datetime(2027, 3, 27, 2, 30), ["2027-03-27 01:30", "2027-03-28 01:30", "2027-03-29 00:30"]),  # noqa: DTZ001
        (datetime(2027, 10, 30, 2, 30), ["2027-10-30 00:30", "2027-10-31 00:30", "2027-11-01 01:30"]),  # noqa: DTZ001
    ):
        assert times(every, 3, first=day) == dues
