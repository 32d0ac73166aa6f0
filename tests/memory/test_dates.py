"""Times in words: what is read, in six languages, and what is rather not read than read wrong. It is Monday, 30 November 2026, 09:02."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.dates import FARTHEST, days_in, when_in

NOW = datetime(2026, 11, 30, 9, 2)  # noqa: DTZ001 - on the person's clock


def wall(text: str, locale: str = "") -> str:
    """The time that is read, with its recurrence and what is left of the text."""
    when = when_in(text, NOW, locale)
    if when is None:
        return "nothing"
    at = f"{when.wall:%Y-%m-%d %H:%M}" if when.wall is not None else str(when.span)
    return " | ".join(part for part in (at, when.every, when.rest) if part)


@pytest.mark.parametrize(
    ("texts", "at"),
    [
        (("tomorrow at 8", "morgen um 8", "demain à 8h", "mañana a las 8", "domani alle 8", "amanhã às 8"), "2026-12-01 08:00"),
        (
            ("tomorrow 8", "tomorrow at \N{FULLWIDTH DIGIT EIGHT}", "morgen um acht", "8 in the morning", "8am"),
            "2026-12-01 08:00",
        ),
        (("at 8", "um acht", "8 o'clock", "gegen 8", "às 8", "tonight at 8", "um 8 Uhr abends"), "2026-11-30 20:00"),
        (("half past five", "um halb sechs", "um 17:30", "5:30 pm", "5.30 pm"), "2026-11-30 17:30"),
        (("quarter to eight", "viertel vor 8", "alle 8 meno un quarto", "a las 8 menos cuarto"), "2026-11-30 19:45"),
        (("alle 8 e un quarto", "a las 8 y cuarto", "às 8 e um quarto"), "2026-11-30 20:15"),
        (("at 5 to 6", "at five to six", "um fünf vor sechs"), "2026-11-30 17:55"),
        (("5 in the afternoon", "at 5 in the afternoon", "um 17 Uhr", "à 17h", "alle 17"), "2026-11-30 17:00"),
        (("à une heure", "a la una", "all'una", "um eins"), "2026-11-30 13:00"),
        (("at noon", "mittags", "à midi", "at 12", "12 pm"), "2026-11-30 12:00"),
        (
            ("at midnight", "heute um Mitternacht", "today at midnight", "tonight at 12", "at 12 am", "at 24:00"),
            "2026-12-01 00:00",
        ),
        (("at 2 at night", "nachts um 2", "tonight at 2"), "2026-12-01 02:00"),
        (("next friday", "am Freitag", "vendredi prochain", "el viernes", "venerdì", "na sexta-feira"), "2026-12-04 09:00"),
        (("friday next week", "nächste Woche Freitag", "vendredi la semaine prochaine"), "2026-12-11 09:00"),
        (("next week", "nächste Woche", "la semaine prochaine", "la settimana prossima"), "2026-12-07 09:00"),
        (("on 29 February", "am 29. Februar", "29.2.", "le 29 février"), "2028-02-29 09:00"),
        (("on the 15th at 9", "am 15. um 9", "le 15 à 9h", "el 15 a las 9"), "2026-12-15 09:00"),
        (("2026-12-03T14:30", "2026-12-03 14:30", "3.12.2026 14:30", "Dec 3rd at 2:30pm"), "2026-12-03 14:30"),
        (("in 3 days at 9",), "2026-12-03 09:00"),
        (("on 31.12.9999",), "9999-12-31 09:00"),
    ],
)
def test_a_time_on_the_clock(texts: tuple[str, ...], at: str) -> None:
    assert {text: wall(text) for text in texts} == dict.fromkeys(texts, at)


@pytest.mark.parametrize(
    ("texts", "span"),
    [
        (
            ("in 20 minutes", "in 20 Minuten", "dans 20 minutes", "en 20 minutos", "tra 20 minuti", "20 minutes from now"),
            "0:20:00",
        ),
        (("in 2 hours and 30 minutes", "in two and a half hours", "in 2h30", "in 2h 30m", "en 2 horas y 30 minutos"), "2:30:00"),
        (("in an hour and a half", "in eineinhalb Stunden", "in 90 min", "dans une heure et demie"), "1:30:00"),
        (("in a week", "a week from today", "in 7 Tagen"), "7 days, 0:00:00"),
        (("in 0 minutes",), "0:00:00"),
        (("in 9999 years",), str(FARTHEST)),
    ],
)
def test_a_length_of_time(texts: tuple[str, ...], span: str) -> None:
    assert {text: wall(text) for text in texts} == dict.fromkeys(texts, span)


@pytest.mark.parametrize(
    ("texts", "read"),
    [
        (("every weekday at 8", "jeden Werktag um 8", "werktags um 8"), "2026-12-01 08:00 | FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
        (
            ("on mondays at 7 am", "montags um 7:00", "every monday at 7 am", "los lunes a las 7:00"),
            "2026-12-01 07:00 | FREQ=WEEKLY;BYDAY=MO",
        ),
        (("every other tuesday", "jeden zweiten Dienstag"), "2026-12-01 09:00 | FREQ=WEEKLY;INTERVAL=2;BYDAY=TU"),
        (
            ("every morning at 7", "jeden Morgen um 7", "chaque matin à 7h", "cada mañana a las 7", "ogni mattina alle 7"),
            "2026-12-01 07:00 | day",
        ),
        (("every night at 11", "jeden Abend um 23 Uhr", "todas as noites às 23"), "2026-11-30 23:00 | day"),
        (
            ("every 24 December", "jeden 24. Dezember", "every year on December 24", "cada 24 de diciembre"),
            "2026-12-24 09:00 | year",
        ),
        (
            ("every 15th of the month", "am 15. jeden Monats", "monthly on the 15th", "le 15 de chaque mois"),
            "2026-12-15 09:00 | month",
        ),
        (
            (
                "every last friday of the month",
                "on the last friday of every month",
                "every month on the last friday",
                "jeden letzten Freitag im Monat",
                "jeden Monat am letzten Freitag",
                "am letzten Freitag jeden Monats",
                "le dernier vendredi de chaque mois",
                "chaque mois, le dernier vendredi",
                "el último viernes de cada mes",
                "cada mes el último viernes",
                "l'ultimo venerdì di ogni mese",
                "ogni mese l'ultimo venerdì",
                "na última sexta-feira de cada mês",
                "todos os meses na última sexta-feira",
            ),
            "2026-12-01 09:00 | FREQ=MONTHLY;BYDAY=-1FR",
        ),
        (("every day for 2 weeks", "jeden Tag für 2 Wochen"), "2026-12-01 09:00 | FREQ=DAILY;UNTIL=20261214T235959"),
        (("every day at 8, 5 times",), "2026-12-01 08:00 | FREQ=DAILY;COUNT=5"),
        (("every day until 24 December", "täglich bis 24. Dezember"), "2026-12-01 09:00 | FREQ=DAILY;UNTIL=20261224T235959"),
    ],
)
def test_a_recurrence(texts: tuple[str, ...], read: str) -> None:
    assert {text: wall(text) for text in texts} == dict.fromkeys(texts, read)


@pytest.mark.parametrize(
    "text",
    [
        "yesterday at 8",
        "gestern um 8",
        "hier à 8h",
        "vor 5 Minuten",
        "3 days ago at 8",
        "in -5 minutes",
        "in minus five minutes",
        "5 minutes",
        "on 31 June at 8",
        "am 30.2. um 8",
        "on 30 February",
        "at 25:00",
        "at 12:60",
        "every hour",
        "jede Stunde",
        "every 5 minutes",
        "every 0 days",
        "every month on friday",
        "on friday every month",
        "on the first and third monday of every month",
        "the second to last friday of the month",
        "every day except sunday",
        "jeden Tag außer Sonntag um 8",
        "todos los días excepto los sábados",
        "every day at 9 and 21",
        "every day at 9 and 21 to take pills",
        "tomorrow at 25:00",
        "tomorrow at 8:75",
        "at 9 and 5 every day",
        "9am and 9pm daily",
        "um 8 und um 20 Uhr",
        "cada mes el viernes",
        "every day until yesterday",
        "next month",
        "later",
        "in a bit",
        "when I get home",
        "",
    ],
)
def test_what_cannot_be_read_for_certain_is_no_time(text: str) -> None:
    assert wall(text) == "nothing"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("remind me at 8 to knock 3 times", "2026-11-30 20:00 | remind me to knock 3 times"),
        ("remind me at 8 to add 1/2 cup of sugar", "2026-11-30 20:00 | remind me to add 1/2 cup of sugar"),
        ("remind me at 8 about Friday's meeting", "2026-11-30 20:00 | remind me about Friday's meeting"),
        ("remind me tomorrow at 8 of the talk we had yesterday", "2026-12-01 08:00 | remind me of the talk we had yesterday"),
        ("set 5 alarms at 8", "2026-11-30 20:00 | set 5 alarms"),
        ("remind me in 2 hours and an apple", "2:00:00 | remind me and an apple"),
        ("for 5 pm: tea", "2026-11-30 17:00 | tea"),
        ("as one of my friends at 8", "2026-11-30 20:00 | as one of my friends"),
    ],
)
def test_what_only_looks_like_a_time_is_left_in_the_text(text: str, read: str) -> None:
    assert wall(text) == read


def test_the_locale_decides_what_12_03_is() -> None:
    assert (wall("on 12/03/2027"), wall("on 12/03/2027", "en-US")) == ("2027-03-12 09:00", "2027-12-03 09:00")


@given(st.text(max_size=500), st.datetimes(datetime(2020, 1, 1), datetime(2090, 1, 1)))  # noqa: DTZ001
def test_any_text_is_read_or_left(text: str, now: datetime) -> None:
    when = when_in(text, now)
    assert when is None or (when.wall is None) != (when.span is None)
    list(days_in(text, now.date()))


_WORDS = (
    "in at on every the of next um am alle chaque 0 5 31 99 9999 minutes hours days weeks months years monday friday february february. 29 30. "
    "tomorrow yesterday until for times morning night halb half past quarter to and a second last month 12/31 2026-02-30 24:00 13pm noon"
)
_PIECES = st.sampled_from(_WORDS.split())


@given(st.lists(_PIECES, max_size=9), st.datetimes(datetime(2020, 1, 1), datetime(2090, 1, 1)))  # noqa: DTZ001
def test_any_words_of_time_are_read_or_left(pieces: list[str], now: datetime) -> None:
    when = when_in(" ".join(pieces), now)
    assert when is None or when.span is None or timedelta() <= when.span <= FARTHEST


def test_all_days_that_a_text_names_with_their_month() -> None:
    assert list(days_in("From 2026-12-03T10:00 to 5 de enero, not 31 June, not 5 settimane", date(2026, 11, 30))) == [
        date(2026, 12, 3),
        date(2027, 1, 5),
    ]
