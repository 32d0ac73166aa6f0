"""Who may do what: the table of the one authoriser."""

from typing import get_args

import pytest

from bot.commands.access import Action, Actor, Target, admin_of, may

ADA = Actor("discord::ada", agent=1)
BOB = Actor("discord::bob", agent=2)
ADMIN = Actor("discord::root", agent=3, admin_of=frozenset({"guild"}))
OPERATOR = Actor("operator:sys", operator=True)
OWN = ("view", "search", "forget", "export", "change", "pause", "settings", "link", "stop", "retry", "fresh", "status")


@pytest.mark.parametrize("action", OWN)
def test_everybody_owns_their_memory(action: Action) -> None:
    direct = may(ADA, action, Target(agent=1, own_direct=True))
    group = may(ADA, action, Target(agent=1))
    assert (direct.allowed, direct.everything, direct.role) == (True, True, "person")
    assert (group.allowed, group.everything) == (True, False)


@pytest.mark.parametrize("action", OWN)
def test_nobody_touches_somebody_elses(action: Action) -> None:
    verdict = may(BOB, action, Target(agent=1, own_direct=True))
    assert not verdict.allowed
    assert verdict.why


@pytest.mark.parametrize(
    ("action", "target", "allowed"),
    [
        ("view", Target(agent=1, workspace="guild"), True),
        ("forget", Target(agent=1, workspace="guild"), True),
        ("view", Target(agent=1, workspace="other"), False),
        ("view", Target(agent=1, workspace="guild", direct=True), False),
        ("export", Target(agent=1, workspace="guild"), True),
        ("usage", Target(workspace="guild"), True),
        ("block", Target(workspace="other"), False),
        ("hold", Target(agent=1, workspace="guild"), False),
        ("change", Target(agent=1, workspace="guild"), False),
        ("replay", Target(agent=1, workspace="guild"), False),
        ("view", Target(agent=1), False),
    ],
)
def test_a_workspaces_admin_reaches_what_came_from_it(action: Action, target: Target, allowed: bool) -> None:
    verdict = may(ADMIN, action, target)
    assert verdict.allowed is allowed
    assert not verdict.everything
    assert verdict.workspace == ("guild" if allowed else None)


def test_the_operator_acts_across_and_is_logged_as_such() -> None:
    verdict = may(OPERATOR, "view", Target(agent=1))
    assert (verdict.allowed, verdict.everything, verdict.role) == (True, True, "operator")
    assert may(OPERATOR, "replay", Target()).allowed
    assert not may(OPERATOR, "retry", Target(agent=1)).allowed


def test_a_button_serves_only_the_person_it_was_made_for() -> None:
    assert may(ADA, "press", Target(agent=1, made_for="discord::ada")).allowed
    assert not may(BOB, "press", Target(agent=1, made_for="discord::ada")).allowed
    assert not may(OPERATOR, "press", Target(agent=1, made_for="discord::ada")).allowed
    assert not may(ADA, "press", Target(agent=1)).allowed


def test_dead_letters_are_the_operators() -> None:
    assert not may(ADA, "replay", Target(agent=1, own_direct=True)).allowed
    assert not may(Actor("x"), "replay", Target()).allowed


def test_help_is_for_everybody_and_every_action_has_an_answer() -> None:
    assert may(Actor("anybody"), "help", Target()).allowed
    for action in get_args(Action):
        assert may(Actor("stranger"), action, Target(agent=1)).allowed is (action == "help")


def test_direct_messages_are_an_admins_only_where_the_config_says_so() -> None:
    sees = Actor("slack:T:root", agent=3, admin_of=frozenset({"guild"}), sees_direct=True)
    assert may(sees, "view", Target(agent=1, workspace="guild", direct=True)).direct
    assert not may(ADMIN, "view", Target(agent=1, workspace="guild")).direct


def test_an_admin_is_named_by_id_or_role_for_the_workspace_they_act_in_alone() -> None:
    admins = {"guild": ("u1", "role9"), "other": ("u2",)}
    assert admin_of("u1", (), "guild", admins) == {"guild"}
    assert admin_of("u7", ("role9",), "guild", admins) == {"guild"}
    assert admin_of("u7", ("role1",), "guild", admins) == frozenset()
    assert admin_of("u1", (), "other", admins) == frozenset()
    assert admin_of("u1", ("role9",), "", {"": ("u1",), **admins}) == frozenset()
