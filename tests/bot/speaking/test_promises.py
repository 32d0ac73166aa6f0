"""Five hundred requests in six languages and odd wordings, to a model that promises and sets nothing: none ends without the bot's word."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, product

import pytest

from bot.speaking.initiative import Initiative
from bot.words.reminding import asks_reminder, promises_reminder
from memory.dates import when_in
from memory.db import Database
from tests.bot.dialogue import START, dialogue
from tests.bot.speaking.test_initiative import RULES
from tests.servers.model import reply

ASKS = {
    "en": (
        "remind me {when} to {what}",
        "{when} remind me: {what}!!",
        "hey could u pls remind me {when} about {what}",
        "set a reminder for {what} {when}",
        "I need an alarm {when}, {what}",
        "don't let me forget to {what} {when}",
        "ping me {when} -> {what}",
        "gimme a nudge? nah: give me a nudge {when} to {what}",
        "so that I don't forget to {what}, tell me {when}",
        "can you wake me {when}? {what}",
        "REMIND ME {when} {what}",
        "quick one: a reminder to {what} {when} please",
        "Would it be possible to be so kind and remind me, {when}, to {what}",
    ),
    "de": (
        "erinnere mich {when} an {what}",
        "kannst du mich {when} an {what} erinnern?",
        "{when} bitte erinnern: mich an {what} erinnern!",
        "stell mir einen Timer {when}, {what}",
        "lass mich {when} {what} nicht vergessen",
        "weck mich {when}, {what}",
        "sag mir {when} Bescheid wegen {what}",
        "mach mir ne Erinnerung {when} für {what}",
        "damit ich {what} nicht vergesse: meld dich {when}",
    ),
    "fr": (
        "rappelle-moi {when} de {what}",
        "tu peux me rappeler {when} de {what} ?",
        "mets un rappel {when} : {what}",
        "fais-moi penser {when} à {what}",
        "réveille-moi {when}, {what}",
        "préviens-moi {when} pour {what}",
        "pour ne pas oublier {what}, fais-moi signe {when}",
    ),
    "es": (
        "recuérdame {when} {what}",
        "¿me puedes recordar? digo: puedes recordarme {when} {what}",
        "pon una alarma {when} para {what}",
        "avísame {when} de {what}",
        "que no se me olvide {what} {when}",
        "hazme acordar {when} de {what}",
        "despiértame {when}: {what}",
    ),
    "it": (
        "ricordami {when} di {what}",
        "puoi ricordarmi {when} di {what}?",
        "metti un promemoria {when}: {what}",
        "svegliami {when}, {what}",
        "avvisami {when} per {what}",
        "non farmi dimenticare {what} {when}",
        "fammi ricordare {when} di {what}",
    ),
    "pt": (
        "lembra-me {when} de {what}",
        "me lembra {when} de {what}",
        "podes lembrar-me {when} de {what}?",
        "põe um alarme {when}: {what}",
        "avisa-me {when} de {what}",
        "não me deixes esquecer {what} {when}",
        "cria um lembrete {when} para {what}",
    ),
}
WHENS = {
    "en": ("at 5 pm", "tomorrow at 8", "in 20 minutes", "on friday at noon", "every weekday at 9"),
    "de": ("um 17 Uhr", "morgen um 8", "in 20 Minuten", "am Freitag um 12 Uhr", "jeden Werktag um 9"),
    "fr": ("à 17h", "demain à 8h", "dans 20 minutes", "vendredi à midi", "chaque jour à 9h"),
    "es": ("a las 17:00", "mañana a las 8", "en 20 minutos", "el viernes a las 12:00", "cada día a las 9"),
    "it": ("alle 17", "domani alle 8", "tra 20 minuti", "venerdì alle 12", "ogni giorno alle 9"),
    "pt": ("às 17h", "amanhã às 8", "em 20 minutos", "na sexta-feira às 12h", "todos os dias às 9"),
}
WHATS = {
    "en": ("water the plants", "call my mum back"),
    "de": ("die Wäsche", "das Paket"),
    "fr": ("appeler maman", "sortir le linge"),
    "es": ("llamar a mamá", "regar las plantas"),
    "it": ("chiamare la mamma", "stendere il bucato"),
    "pt": ("ligar à mãe", "regar as plantas"),
}
PROMISES = {
    "en": ("Sure, I'll remind you!", "Done: your reminder is set.", "I've set a timer for that.", "I won't let you forget."),
    "de": (
        "Klar, ich erinnere dich!",
        "Ich werde dich daran erinnern.",
        "Die Erinnerung ist gesetzt.",
        "Ich sag dir dann Bescheid.",
    ),
    "fr": ("Bien sûr, je te le rappellerai !", "Je vais te le rappeler.", "Le rappel est programmé.", "Je te fais signe."),
    "es": ("¡Claro, te lo recordaré!", "Voy a recordártelo.", "El recordatorio está creado.", "Te aviso entonces."),
    "it": ("Certo, te lo ricorderò!", "Ti ricordo io.", "Il promemoria è impostato.", "Ti avviso allora."),
    "pt": ("Claro, vou lembrar-te!", "Lembro-te disso.", "O lembrete está definido.", "Aviso-te então."),
}
NOTHING = {
    "en": "No reminder is set.",
    "de": "Es ist keine Erinnerung gesetzt.",
    "fr": "Aucun rappel n'est programmé.",
    "es": "No hay ningún recordatorio puesto.",
    "it": "Non è impostato nessun promemoria.",
    "pt": "Não há nenhum lembrete marcado.",
}
EVERY = int(os.environ.get("EVERY", "12"))
"""Every so many are a whole dialogue (EVERY=1 in the environment: all); the others are judged as the turn judges them."""


def requests() -> Iterator[tuple[str, str, str]]:
    """The language, the request, and what the model says to it; more than five hundred."""
    for language, asks in ASKS.items():
        promises = cycle(PROMISES[language])
        for (ask, when, what), promise in zip(product(asks, WHENS[language], WHATS[language]), promises, strict=False):
            text = ask.format(when=when, what=what)
            yield language, text, promise


ALL = list(requests())


def test_there_are_five_hundred_and_each_is_seen_by_what_was_asked_and_by_what_was_promised() -> None:
    assert len(ALL) == 500
    now = START.replace(tzinfo=None)
    unseen = [text for _, text, _ in ALL if not asks_reminder(text, lambda text: when_in(text, now) is not None)]
    assert unseen == []
    assert [promise for promises in PROMISES.values() for promise in promises if not promises_reminder(promise)] == []


def test_what_is_said_of_other_things_is_no_request_and_no_promise() -> None:
    others = [
        "I remember my first day at school",
        "Do you remember what I told you?",
        "Ich erinnere mich gern an den Sommer",
        "Ich kann mich nicht erinnern, wie er heißt",
        "Je me rappelle très bien ce jour",
        "Recuerdo mi primer día",
        "Mi ricordo bene di lui",
        "Lembro de tudo",
        "The alarm went off at five",
        "you remind me of my aunt",
        "Please don't remind me any more",
        "stop reminding me of the plants",
        "erinnere mich nicht mehr daran",
        "Du musst mich nicht mehr erinnern",
        "ne me le rappelle plus",
        "no me lo recuerdes más",
        "non ricordarmelo più",
        "não me lembres mais",
        "Tell me a story",
        "What time is it?",
    ]
    now = START.replace(tzinfo=None)
    assert [text for text in others if asks_reminder(text, lambda text: when_in(text, now) is not None)] == []
    both = "Don't remind me at five, remind me at six"
    assert asks_reminder(both, lambda _: True), "beside a real one"
    assert [text for text in (*others, "Yes, I remember that.", "Das erinnert mich an dich.") if promises_reminder(text)] == []


@pytest.mark.timeout(1800)
async def test_none_ends_with_a_promise_and_no_timer(db: Database) -> None:
    bare = []
    async with dialogue(db) as d:
        d.initiative = Initiative(db, RULES)
        for number, (language, text, promise) in enumerate(ALL[::EVERY]):
            person = replace(d.person, user_id=f"p{number}", locale=language, timezone="Europe/Berlin" if number % 2 else None)
            talk = d.elsewhere(f"p{number}", "direct", workspace="", person=person)
            d.model.add(reply(promise), reply(promise))
            said = await talk.hear(text)
            if not said[-1].startswith(NOTHING[language]):
                bare.append((text, said))
    assert bare == []
