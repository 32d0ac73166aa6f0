"""A plain yes or no, and nothing read into what is neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.keeping.consent import question
from bot.words.answers import yes_or_no

YES = [
    "Yes",
    "yes!",
    "sure",
    "YES please",
    "Yes, please do.",
    "Ja, gerne!",
    "ja bitte",
    "Oui",
    "sí",
    "Sim",
    "ja graag",
    "Evet",
    "Tak",
    "Да",
    "так",
    "نعم",
    "好的",
    "はい",
    "네",
    "हाँ",
    "ok 👍",
    "ok 👍🏽",
    "yes ❤️",
    "yes 👨‍👩‍👧",
    "👍",
    "yes :+1:",
    ":thumbsup::skin-tone-3:",
    "Yes <:party:1234567>",
    "yes\nplease",
    "sure, sure",
    "Yes yes, of course, thank you",
    "yes, you may",
    "> May I?\nyes",
    # with the politeness of the six languages
    "Yes, thank you very much!",
    "sure, thanks a lot",
    "Ja, vielen Dank!",
    "Gerne, danke schön",
    "Oui, s'il te plaît",
    "d’accord, merci beaucoup",
    "Sí, por favor, muchas gracias",
    "Sì, per favore",
    "va bene, grazie mille",
    "sim, se faz favor",
    "Sim, muito obrigada!",
]
NO = [
    "No",
    "no, thanks",
    "Nein danke!",
    "non merci",
    "No gracias",
    "não",
    "nee",
    "Hayır",
    "nie",
    "Нет, спасибо",
    "لا",
    "不用了",
    "いいえ",
    "아니요",
    "👎",
    ":-1:",
    "no no no",
    "No, please don't 🙏",
    "Nein, bitte nicht",
    "No, thank you very much",
    "Nein, vielen Dank",
    "Non, merci beaucoup",
    "No, muchas gracias",
    "No, grazie mille",
    "Não, muito obrigado",
]
NEITHER = [
    "",
    "?",
    "Yes but only on weekends and never about work",
    "no idea what you mean, sorry",
    "yes no",
    "I had a good day",
    "not sure",
    "yesterday",
    "no problem",
    "please",
    "thank you very much",
    "bitte schön",
    "s'il vous plaît",
    "❤️",
    "> yes",
    # a yes or no in it, which says something else as a whole
    "ok, but please don't store it",
    "sure, sure. But do not save that!",
    "ja, aber merk dir das nicht",
    "yes? what was the question?",
    "fine, I have to go now",
    "why not, but only if it's private",
    "Pasta tonight, is that ok?",
    "yes?",
    "ok?",
    "نعم؟",
    "はい？",
    "ok 👎",
    "yes :thumbsdown:",
    "yes 🙅‍♀️",
    "yes, don't",
    "no, go ahead",
    "ja lieber nicht",
    "yes\nbut not that",
    "of course not",
    "yes " * 60 + "but not that",
    "fine. whatever. can we talk about something else",
    "ok lass uns über was anderes reden",
]


@pytest.mark.parametrize("text", YES)
def test_yes(text: str) -> None:
    assert yes_or_no(text) is True


@pytest.mark.parametrize("text", NO)
def test_no(text: str) -> None:
    assert yes_or_no(text) is False


@pytest.mark.parametrize("text", NEITHER)
def test_neither(text: str) -> None:
    assert yes_or_no(text) is None


@given(
    st.sampled_from([*YES, *NO]),
    st.from_regex(r"[a-z]{3,12}", fullmatch=True).filter(lambda word: yes_or_no(f"yes {word}") is None),
)
def test_one_word_more_and_it_is_none(text: str, word: str) -> None:
    for whole in (f"{text}\n{word}", f"{word}, {text}") if not text.startswith(">") else (f"{text}, {word}",):
        assert yes_or_no(whole) is None


@given(st.text(max_size=300))
def test_any_text_gets_an_answer(text: str) -> None:
    assert yes_or_no(text) in (True, False, None)


def test_a_question_is_asked_in_the_persons_language() -> None:
    assert question("memory", ["Has a cat.", "Has a dog."], "de-AT").startswith(
        "Darf ich mir das über dich merken: “Has a cat.”; “Has a dog.”?"
    )
    assert question("zone", ["Europe/Berlin"], "pt_BR").startswith("O teu fuso horário é “Europe/Berlin”?")
    assert (
        question("zone", ["Europe/Berlin"], "")
        == question("zone", ["Europe/Berlin"], "tlh")
        == question("zone", ["Europe/Berlin"], "en-US")
    )
    assert len(question("memory", ["x" * 8000], "")) < 700
