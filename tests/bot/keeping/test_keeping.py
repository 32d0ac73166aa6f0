"""What to keep, as a pure decision; and how well it does on a small labelled set beside the seeds' keyword heuristic."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bot.config.keeping import KINDS
from bot.keeping.decision import (
    Around,
    Judged,
    KeepingRules,
    Said,
    decide,
    in_conflict,
    keyword_heuristic,
    others_words,
    sensitive_kind,
    worth_keeping,
)
from bot.keeping.keeper import read
from bot.words.secrets import masked, secrets

# text, worth keeping, sensitive kind. Written before the lists were tried on it, in the words of models and of people.
LABELLED: tuple[tuple[str, bool, str], ...] = (
    ("My name is Ada and I live in Leipzig.", True, ""),
    ("Remember that I prefer tea.", True, ""),
    ("I prefer short answers.", True, ""),
    ("The user's name is Priya.", True, ""),
    ("Has two cats, Mimi and Rolf.", True, ""),
    ("Works as a carpenter in Graz.", True, ""),
    ("Birthday is 14 March.", True, ""),
    ("Learning the cello since 2024.", True, ""),
    ("Wants to run the Berlin marathon in September.", True, ""),
    ("Speaks German and Portuguese.", True, ""),
    ("Sister Lena studies in Vienna.", True, ""),
    ("Does not like phone calls in the morning.", True, ""),
    ("Vegetarian, cooks on Sundays.", True, ""),
    ("Is planning a trip to Lisbon with Tom in May.", True, ""),
    ("Calls her grandmother every Friday.", True, ""),
    ("Moved from Hamburg to Kiel last year.", True, ""),
    ("Dog is called Biscuit.", True, ""),
    ("Uses Arch Linux and vim.", True, ""),
    ("Mag keine Pilze.", True, ""),
    ("Arbeitet nachts im Hafen.", True, ""),
    ("J'habite à Lyon avec mon frère.", True, ""),
    ("Trabaja en una panadería.", True, ""),
    ("Said goodbye to her old job in June and starts at Siemens in August.", True, ""),
    ("Thanked her father in her wedding speech for the boat he built.", True, ""),
    ("Asked how to remove wine stains because the sofa is new.", True, ""),
    ("Has type 1 diabetes and carries insulin.", True, "health"),
    ("Is allergic to peanuts.", True, "health"),
    ("Takes pills for high blood pressure.", True, "health"),
    ("Ist seit März in Therapie.", True, "health"),
    ("Is expecting a child in May.", True, "health"),
    ("Had knee surgery in 2023.", True, "health"),
    ("Est enceinte de trois mois.", True, "health"),
    ("Hears badly on the left ear since an illness.", True, "health"),
    ("Came out as gay to his parents last summer.", True, "sexuality"),
    ("Is married to a woman and identifies as lesbian.", True, "sexuality"),
    ("Prays five times a day and fasts in Ramadan.", True, "religion"),
    ("Ist katholisch erzogen worden.", True, "religion"),
    ("Voted for the Greens in 2025.", True, "politics"),
    ("Is a member of the Labour party.", True, "politics"),
    ("Her father is of Turkish descent.", True, "ethnicity"),
    ("Is a union rep at the plant.", True, "union"),
    ("Ist in der Gewerkschaft.", True, "union"),
    ("Was convicted of fraud in 2010.", True, "crime"),
    ("Salary is 4,200 euros a month.", True, "finances"),
    ("Is in debt after the divorce.", True, "finances"),
    ("Had a DNA test done.", True, "biometrics"),
    ("The user said hello.", False, ""),
    ("User greeted me.", False, ""),
    ("The user is typing.", False, ""),
    ("User seems bored.", False, ""),
    ("Asked what time it is.", False, ""),
    ("The person thanked me for the answer.", False, ""),
    ("We had a nice chat.", False, ""),
    ("ok", False, ""),
    ("Good morning!", False, ""),
    ("Danke dir", False, ""),
    ("User laughed.", False, ""),
    ("The user is online now.", False, ""),
    ("User asked about the weather.", False, ""),
    ("No new information.", False, ""),
    ("Unknown.", False, ""),
    ("User agreed with that.", False, ""),
    ("The user asked for a joke.", False, ""),
    ("lol", False, ""),
    ("User waved back.", False, ""),
    ("They want me to answer again.", False, ""),
    ("The conversation was about nothing in particular.", False, ""),
)


def figures(judge: Callable[[str], bool], wanted: Callable[[tuple[str, bool, str]], bool]) -> tuple[float, float]:
    """Precision and recall of a judge over the labelled set."""
    hits = [(judge(each[0]), wanted(each)) for each in LABELLED]
    true = sum(found and right for found, right in hits)
    return true / max(1, sum(found for found, _ in hits)), true / sum(right for _, right in hits)


def test_figures_on_the_labelled_set(capsys: pytest.CaptureFixture[str]) -> None:
    """Worth keeping, against the seeds' heuristic; and sensitive kinds."""
    rows = {
        "worth keeping, ours": figures(worth_keeping, lambda each: each[1]),
        "worth keeping, keyword heuristic": figures(keyword_heuristic, lambda each: each[1]),
        "sensitive": figures(lambda text: sensitive_kind(text) is not None, lambda each: bool(each[2])),
    }
    with capsys.disabled():
        for name, (precision, recall) in rows.items():
            print(f"\n{name}: precision {precision:.2f}, recall {recall:.2f} of {len(LABELLED)}", end="")
        print()
    assert rows["worth keeping, ours"][1] == 1.0, "a fact that is thrown away is worse than small talk that is kept"
    assert rows["worth keeping, ours"][0] >= 0.9
    assert rows["sensitive"][1] >= 0.9
    assert rows["sensitive"][0] >= 0.9
    assert rows["worth keeping, keyword heuristic"][1] < 0.2


@pytest.mark.parametrize(("text", "wanted"), [(text, kind) for text, _, kind in LABELLED if kind])
def test_the_kind_that_is_found_is_the_right_one(text: str, wanted: str) -> None:
    assert sensitive_kind(text) in (wanted, None)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("card 4111 1111 1111 1111", "card number"),
        ("5500-0000-0000-0004 is my card", "card number"),
        ("IBAN DE89 3704 0044 0532 0130 00", "bank account"),
        ("pay to GB29NWBK60161331926819", "bank account"),
        ("the password for the wifi is sunFlower77", "password"),
        ("Passwort lautet geheim!1", "password"),
        ("PIN: 4711", "password"),
        ("use sk-proj-abcdefghijklmnop1234", "key"),
        ("token ghp_abcdefghijklmnopqrstuvwx", "key"),
        ("xoxb-1234567890-abcdefgh", "key"),
        ("AKIAIOSFODNN7EXAMPLE", "key"),
        ("my card is 4111\u00a01111\u00a01111\u00a01111", "card number"),
        ("iban: de89370400440532013000", "bank account"),
        ("the wifi password is `correct horse battery staple`", "password"),
        ("Пароль: qwerty123", "password"),
        ("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----", "key"),
    ],
)
def test_secrets_are_found_and_masked(text: str, kind: str) -> None:
    found = secrets(text)
    assert [each.kind for each in found][:1] == [kind]
    hidden = masked(text)
    assert text[found[0].start : found[0].end] not in hidden
    assert f"[{kind} left out]" in hidden
    decision = decide(text, Around(), KeepingRules())
    assert not decision.keep
    assert kind in decision.why


@pytest.mark.parametrize(
    "text",
    [
        "Call 0151 23456789.",
        "Order 4111111111111112.",
        "Collects pins and badges.",
        "Password managers are useful.",
        "The key is under the mat.",
        "Meets at 10:30 in room 4711.",
        "DE is Germany's code.",
        "Forgot her password again.",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert secrets(text) == []
    assert masked(text) == text


def test_a_hostile_text_is_looked_through_at_once() -> None:
    begun = time.monotonic()
    assert secrets("-----BEGIN PRIVATE KEY-----" * 3_700)
    assert time.monotonic() - begun < 1, "not every beginning is looked at to the end"


def test_layer_follows_length() -> None:
    assert decide("Likes sailing.", Around(), KeepingRules()).layer == "working_context"
    assert (
        decide("On Monday they sailed. The wind was strong. The sail tore. They came home late.", Around(), KeepingRules()).layer
        == "archival_storage"
    )


def test_sensitive_only_of_the_chosen_kinds() -> None:
    assert decide("Has diabetes.", Around(), KeepingRules(KINDS)).ask
    assert not decide("Has diabetes.", Around(), KeepingRules(("religion",))).ask
    assert not decide("Has diabetes.", Around(), KeepingRules()).ask


def test_the_model_may_add_care_and_doubt_but_take_none_away() -> None:
    assert decide("Hears badly.", Around(), KeepingRules(KINDS), Judged(sensitive="health")).sensitive == "health"
    assert decide("Has diabetes.", Around(), KeepingRules(KINDS), Judged(sensitive=None)).sensitive == "health"
    assert not decide("Likes tea.", Around(), KeepingRules(KINDS), Judged(worth=False)).keep
    assert not decide("The user said hello.", Around(), KeepingRules(KINDS), Judged(worth=True)).keep


def test_what_the_model_answers_is_read_strictly() -> None:
    assert read('Sure: [{"worth": false, "sensitive": "health"}, {"worth": true, "sensitive": "nonsense"}]', 2) == [
        Judged(False, "health"),
        Judged(True, None),
    ]
    for answer in ("", "yes", "[1, 2]", '[{"worth": true}]', "[", '{"worth": false}'):
        assert read(answer, 2) == []


BOB = Said("I broke my leg skiing in Davos last winter", "discord::bob", "Bob")


def test_somebody_elses_words_are_not_stored_as_the_persons() -> None:
    around = Around(own=[Said("What do you think of this?")], others=[BOB])
    refused = decide("Broke a leg skiing in Davos last winter.", around, KeepingRules())
    assert not refused.keep
    assert "Bob said this" in refused.why
    named = decide("Bob broke a leg skiing in Davos.", around, KeepingRules())
    assert (named.keep, named.author_id) == (True, "discord::bob")


def test_what_the_person_says_too_is_theirs() -> None:
    around = Around(own=[Said("Me too, I broke a leg skiing in Davos last winter!")], others=[BOB])
    assert decide("Broke a leg skiing in Davos last winter.", around, KeepingRules()).author_id == ""
    assert others_words("Likes tea.", [], [BOB]) is None


@pytest.mark.parametrize(
    ("a", "b", "conflict"),
    [
        ("Lives in Berlin.", "Lives in Hamburg.", True),
        ("Born on 3 May 1980.", "Born on 4 May 1980.", True),
        ("Dog is called Biscuit.", "Dog is called Rex.", True),
        ("Dog is called Biscuit.", "The dog is called Biscuit", False),
        ("Likes tea.", "Plays the cello.", False),
        ("Works at Siemens in Berlin.", "Brother works at Bosch in Stuttgart.", False),
    ],
)
def test_conflicts_are_noticed(a: str, b: str, conflict: bool) -> None:
    assert in_conflict(a, b) is conflict
    assert bool(decide(a, Around(entries=[b]), KeepingRules()).conflicts) is conflict
