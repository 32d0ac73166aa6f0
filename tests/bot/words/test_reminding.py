"""Short answers to a reminder, in six languages: put off, done, not again; and what only looks like one."""

from __future__ import annotations

import pytest

from adapters.catalogue import say
from bot.speaking.by_words import length_in
from bot.words.reminding import answer_to_reminder
from memory.date_words import LANGUAGES

LATER = {
    "Later!": None,
    "Snooze": None,
    "not now": None,
    "ok, remind me later please": None,
    "snooze for an hour": 60,
    "remind me again in 20 minutes": 20,
    "10 more minutes": 10,
    "5 more min pls": 5,
    "Später bitte": None,
    "nicht jetzt": None,
    "erinnere mich später": None,
    "in einer Stunde wieder": 60,
    "noch fünf Minuten": 5,
    "verschieb um 10 Minuten": 10,
    "Plus tard": None,
    "pas maintenant, merci": None,
    "rappelle-moi dans 10 minutes": 10,
    "encore 5 minutes": 5,
    "Más tarde": None,
    "ahora no": None,
    "pospón 15 minutos": 15,
    "otros diez minutos": 10,
    "Più tardi": None,
    "rimanda di 10 minuti": 10,
    "non ora": None,
    "ancora 20 minuti": 20,
    "Mais tarde": None,
    "agora não": None,
    "adia uma hora": 60,
    "mais 10 minutos": 10,
}
DONE = [
    "Done!",
    "done, thanks",
    "I did it",
    "I've already done it",
    "✅",
    "done ✅",
    "Erledigt.",
    "ist schon erledigt",
    "hab ich gemacht, danke",
    "C'est fait",
    "je l'ai déjà fait",
    "terminé",
    "Hecho",
    "ya está",
    "ya lo hice",
    "Fatto",
    "l'ho già fatto",
    "Feito",
    "já está",
    "já fiz, obrigado",
]
STOP = [
    "Not again",
    "stop reminding me of this",
    "please don't remind me any more",
    "cancel this reminder",
    "Nie wieder!",
    "bitte nicht mehr",
    "erinnere mich nicht mehr daran",
    "Plus jamais",
    "ne me le rappelle plus",
    "Nunca más",
    "no me lo recuerdes más",
    "Mai più",
    "non ricordarmelo più",
    "Nunca mais",
    "não me lembres mais",
]
OTHER = [
    "",
    "ok",
    "Thanks!",
    "👍",
    "later?",
    "10 minutes",
    "more",
    "give me",
    "more tarde",
    "not done",
    "I did the dishes",
    "Later I went to see my aunt in Rome",
    "stop talking about the weather",
    "später vielleicht, wenn der Regen aufhört",
    "snooze the alarm that I have in my bedroom in 10 minutes or so, and then call",
]


@pytest.mark.parametrize(("text", "minutes"), LATER.items(), ids=str)
def test_it_is_put_off(text: str, minutes: int | None) -> None:
    assert answer_to_reminder(text, length_in) == ("snooze", minutes)


@pytest.mark.parametrize(("text", "said"), [*((text, "done") for text in DONE), *((text, "stop") for text in STOP)], ids=str)
def test_it_is_done_or_not_wanted_again(text: str, said: str) -> None:
    assert answer_to_reminder(text, length_in) == (said, None)


@pytest.mark.parametrize("text", OTHER, ids=str)
def test_what_only_looks_like_one_is_none(text: str) -> None:
    assert answer_to_reminder(text, length_in) is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_words_on_each_button_do_what_the_button_does(language: str) -> None:
    assert answer_to_reminder(say("remind.snooze", language, span="10 min"), length_in) == ("snooze", 10)
    assert answer_to_reminder(say("remind.done", language), length_in) == ("done", None)
    assert answer_to_reminder(say("remind.never", language), length_in) == ("stop", None)
