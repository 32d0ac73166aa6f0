"""Recognising a crisis, in many languages; and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.config.persona import Emergency, Persona
from bot.words.care import recognise

PLAIN = [
    # en
    "I want to kill myself",
    "i wanna die",
    "I'm going to end my life tonight.",
    "I've been having suicidal thoughts",
    "I don't want to live anymore",
    "Everyone would be better off without me",
    "I cut my wrists again",
    "i just want to be dead",
    "I don’t want to wake up anymore",
    "I am thinking about hurting myself",
    "Great day, thanks! But honestly I want to die.",
    "i feel so suicidal",
    "I overdosed on my pills",
    "I am planning to kill myself",
    "I wish I was dead",
    "I have the urge to hurt myself",
    "i am going to take my life",
    "thinking about taking my own life",
    # de
    "Ich will nicht mehr leben",
    "Ich möchte sterben",
    "ich will mich umbringen",
    "Ich habe daran gedacht, mir das Leben zu nehmen.",
    "Ich bringe mich um",
    "Ich ritze mich wieder",
    "ich habe Selbstmordgedanken",
    "Am liebsten wäre ich tot",
    # fr
    "Je veux mourir",
    "j'ai envie de mourir",
    "Je pense à me suicider",
    "Je vais mettre fin à mes jours",
    "j'ai des idées suicidaires",
    # es
    "Quiero morirme",
    "me quiero morir",
    "Estoy pensando en suicidarme",
    "ya no quiero vivir",
    "voy a quitarme la vida",
    # it
    "Voglio morire",
    "Voglio uccidermi",
    "penso di farla finita",
    "non voglio più vivere",
    # pt
    "Quero morrer",
    "estou pensando em me matar",
    "não quero mais viver",
    "vou acabar com a minha vida",
    # nl
    "Ik wil dood",
    "ik wil niet meer leven",
    "ik denk aan zelfmoord plegen",
    "ik wil mezelf iets aandoen",
    # tr
    "Ölmek istiyorum",
    "kendimi öldürmek istiyorum",
    "İntihar etmeyi düşünüyorum",
    "yaşamak istemiyorum artık",
    # pl
    "Chcę umrzeć",
    "chcę się zabić",
    "mam myśli samobójcze",
    "nie chcę już żyć",
    # ru
    "Я хочу умереть",
    "я хочу покончить с собой",
    "не хочу больше жить",
    "думаю, как убить себя",
    # uk
    "Я хочу померти",
    "хочу вбити себе",
    "не хочу більше жити",
    # ar
    "أريد أن أموت",
    "افكر في الانتحار",
    "أريد أن أقتل نفسي",
    "لا أريد أن أعيش",
    # zh
    "我想自杀",
    "我不想活了",
    "我想死",
    "活不下去了",
    "我想結束自己的生命",
    # ja
    "死にたい",
    "もう死にたいです",
    "自殺したい",
    "生きていたくない",
    # ko, hi
    "죽고 싶어",
    "자살하고 싶어요",
    "मैं मरना चाहता हूँ",
]

NOT = [
    "This traffic kills me",
    "That cake was to die for",
    "I'm dying to see the new film",
    "I died laughing",
    "my feet are killing me",
    "I watched Suicide Squad yesterday",
    "We have to kill time until six",
    "I hurt myself while climbing, only a scratch",
    "That would be political suicide",
    "My phone is dead",
    "I killed it at karaoke",
    "I would never kill myself",
    "the deadline is killing me",
    "I cut myself shaving",
    "Kill the process and restart it",
    "I don't want to live in Berlin anymore",
    "I don't want to live with my parents anymore",
    "take my life savings out of the bank",
    "I am not suicidal, just tired",
    "I want to die of laughter",
    "Die Katze will ins Haus",
    "die hard is my favourite film",
    "I like dying my hair",
    "I was thinking about dying it black",
    "excited to take it all in",
    "better off without me playing",
    "which direction to take my life",
    "Ich lach mich tot",
    "Ich sterbe vor Hunger",
    "Der Lärm bringt mich um",
    "Ich will nicht mehr in Köln leben",
    "Ich würde mich nie umbringen",
    "Ich bringe mich heute ein bisschen in Form",
    "Je suis mort de rire",
    "c'est à mourir de rire",
    "je meurs de faim",
    "Me muero de risa",
    "me muero de hambre",
    "Muoio di fame",
    "mi piace da morire",
    "Estou morrendo de rir",
    "ik lach me dood",
    "umieram z głodu",
    "умираю со смеху",
    "вмираю зі сміху",
    "我笑死了",
    "累死我了",
    "想死你了",
    "死ぬほど笑った",
    "배고파 죽겠다",
    "اموت من الضحك",
    "açlıktan ölüyorum",
    "Good morning!",
    "",
    "???",
    "I want to dye my hair",
    "Let's end it here for today",
    "I hung the picture myself",
    "The doctor took my temperature",
    "she took it all seriously",
    "I will take it all back",
    "Ich nehme mir das Leben leichter als früher",
]

PERHAPS = [
    "```\nos.kill(os.getpid(), 9)  # kill myself\n```",
    "> I want to die\nWhat did he mean by that?",
    "There's no reason to go on living",
    "I took all my pills",
    "In the book Werther kills himself: I want to die, he says",
    "I read a novel about a suicide",
    "Im Film sagt sie: ich will sterben",
    "I can't go on",
    "I might fall off and hurt myself",
    "There is no point in living",
    "I don't want to be here anymore",
    "ich kann nicht mehr",
    "je n'en peux plus",
    "no aguanto más",
    "больше не могу",
    "撑不下去",
    "消えたい",
    "my uncle's suicide still haunts me",
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_words_are_recognised(text: str) -> None:
    assert recognise(text) == "plain"
    assert recognise(f"Hello. {text.upper() if text.isascii() else text}. Sorry for that.") == "plain"


@pytest.mark.parametrize("text", NOT)
def test_figures_of_speech_are_none(text: str) -> None:
    assert recognise(text) is None


@pytest.mark.parametrize("text", PERHAPS)
def test_what_may_mean_it_is_for_the_second_voice(text: str) -> None:
    assert recognise(text) == "perhaps"


@pytest.mark.parametrize(
    "text",
    ["i dont wanna be alive anymore", "Ich hab keine Lust mehr zu leben", "I want to\u200b die", "> How are you?\nI want to die"],
)
def test_plain_words_hide_behind_nothing(text: str) -> None:
    assert recognise(text) == "plain"


def test_one_joke_does_not_hide_what_else_is_said() -> None:
    assert recognise("The traffic kills me. And I want to kill myself.") == "plain"
    assert recognise("This traffic kills me and I want to kill myself") == "plain"
    assert recognise("I'm not suicidal, I just want to kill myself") == "plain"


@given(st.text(max_size=3000))
def test_any_text_gets_an_answer(text: str) -> None:
    assert recognise(text) in (None, "plain", "perhaps")


def test_the_lines_are_those_that_the_operator_marked() -> None:
    said = Persona(name="K", character="x", emergency=(Emergency(when="a", say="A"), Emergency(when="b", say=" B ", kind="harm")))
    assert said.care == ("B",)
    assert Persona(name="K", character="x", emergency=(Emergency(when="a", say="A"), Emergency(when="b", say="B"))).care == ("A",)
    assert Persona(name="K", character="x").care == ()


def test_long_texts_are_quick() -> None:
    assert recognise("mich " * 40_000 + "ich will sterben") == "plain"
    assert recognise("I want " * 40_000) is None
