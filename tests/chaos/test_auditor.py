"""The auditor sees every fault that is planted, names the message, and says nothing where all is well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.auditor import APOLOGY, LINES, WAITING, audit, tally
from tests.chaos.snapshots import Change, Event, Kept, Memory, Reply, Row, Said, Seen, Shown

World = tuple[Seen, Kept]


def well() -> World:
    """Three people with three messages each, in their direct messages and in a channel, each answered by a turn; P0-1 is remembered."""
    said, shown, events, rows, replies = [], [], [], [], []
    number = 0
    for person in range(3):
        for count in range(1, 4):
            number += 1
            token, where = f"P{person}-{count}", "channel" if count == 3 else f"dm{person}"
            said.append(Said(token, where, f"m{number}", number))
            events.append(Event(number, person, count, where, 1, f"m{number}", number))
            conversation = person * 10 + (count == 3)
            rows.append(Row(number, person, where, conversation, count * 2, "user", "message", f"{token} hello", number, number))
            rows.append(
                Row(
                    number + 100, person, where, conversation, count * 2 + 1, "assistant", "message", f"re: {token}", None, number
                )
            )
            shown.append(Shown(f"b{number}", where, f"re: {token}", number + 0.5))
            replies.append(Reply(number, number, where, "sent", f"re: {token}", f"b{number}"))
    memories = (Memory("working_context", 1, 0, "Number P0-1 is for the garden.", 1, 1),)
    changes = (Change(1, 0, "agent", "working_context_append", "working_context", 1, 1),)
    return Seen(tuple(said), tuple(shown)), Kept(tuple(events), tuple(rows), tuple(replies), memories, changes)


def without(world: World, part: str, index: int) -> World:
    """One row less of something that people saw, or that was kept."""
    return changed(world, part, lambda all_of_it: all_of_it[:index] + all_of_it[index + 1 :])


def changed(world: World, part: str, change: Callable[[tuple], tuple]) -> World:  # type: ignore[type-arg]
    """A part of it changed."""
    seen, kept = world
    if hasattr(seen, part):
        return replace(seen, **{part: change(getattr(seen, part))}), kept
    return seen, replace(kept, **{part: change(getattr(kept, part))})


def at(index: int, **changes: object) -> Callable[[tuple], tuple]:  # type: ignore[type-arg]
    """The change of one row."""
    return lambda rows: (*rows[:index], replace(rows[index], **changes), *rows[index + 1 :])


def also(row: object) -> Callable[[tuple], tuple]:  # type: ignore[type-arg]
    """One row more."""
    return lambda rows: (*rows, row)


def test_nothing_is_found_where_all_is_well() -> None:
    assert audit(*well()) == []


def lost_with_its_turn(world: World) -> World:
    """As a crash of PostgreSQL did: the event is done, and neither words nor answer are anywhere."""
    for part, index in (("rows", 2), ("rows", 2), ("shown", 1), ("replies", 1)):
        world = without(world, part, index)
    return world


def apologised(world: World) -> World:
    """The turn of P0-2 was given up, and its person told so."""
    world = changed(world, "events", at(1, status=2))
    world = changed(world, "shown", at(1, text=APOLOGY))
    return changed(world, "replies", at(1, body=APOLOGY))


@pytest.mark.parametrize(
    ("plant", "kind", "subject"),
    [
        (lambda w: without(w, "events", 1), "lost", "P0-2"),
        (lost_with_its_turn, "lost", "P0-2"),
        (lost_with_its_turn, "words lost", "P0-2"),
        (lambda w: without(w, "shown", 1), "lost", "P0-2"),
        (lambda w: without(w, "shown", 1), "not shown", "outbox 2"),
        (lambda w: without(w, "rows", 2), "words lost", "P0-2"),
        (lambda w: changed(w, "rows", at(2, content="P9-9 hello")), "words lost", "P0-2"),
        (lambda w: changed(w, "rows", also(replace(w[1].rows[2], id=999, position=99))), "words doubled", "P0-2"),
        (lambda w: changed(w, "shown", also(Shown("b99", "dm0", "re: P0-2", 50))), "doubled", "P0-2"),
        (lambda w: changed(w, "shown", at(1, text="re: P0-2 | P0-2")), "doubled", "P0-2"),
        (lambda w: changed(w, "events", also(replace(w[1].events[1], id=99, seq=4))), "doubled", "P0-2"),
        (lambda w: changed(apologised(w), "replies", also(Reply(99, 2, "dm0", "sent", APOLOGY, "b2"))), "doubled", "P0-2"),
        (lambda w: changed(w, "shown", at(1, where="dm1")), "wrong place", "P0-2"),
        (lambda w: changed(w, "rows", at(2, where="dm1")), "wrong place", "P0-2"),
        (lambda w: changed(changed(w, "shown", at(0, at=9.0)), "shown", at(1, at=8.0)), "out of order", "P0-2"),
        (lambda w: changed(w, "shown", at(1, text="re: P0-2 | P0-1", at=3)), "doubled", "P0-1"),
        (lambda w: changed(without(w, "shown", 0), "shown", at(0, text="re: P0-2 | P0-1")), "out of order", "P0-2"),
        (lambda w: changed(w, "shown", at(1, at=1.5)), "out of order", "P0-2"),
        (lambda w: changed(changed(w, "events", at(0, seq=2)), "events", at(1, seq=1)), "out of order", "P0-2"),
        (lambda w: changed(changed(w, "rows", at(0, position=4)), "rows", at(2, position=2)), "out of order", "P0-2"),
        (lambda w: changed(w, "events", at(1, status=0)), "unfinished", "P0-2"),
        (lambda w: changed(w, "events", at(2, seq=7)), "inbox has a hole", "agent 0"),
        (lambda w: changed(w, "shown", also(Shown("b99", "dm0", "re: P7-7", 50))), "from nowhere", "P7-7"),
        (lambda w: changed(w, "shown", also(Shown("b99", "dm0", "Hello, you two", 50))), "surplus", "dm0"),
        (lambda w: changed(w, "shown", also(Shown("b99", "dm0", WAITING, 50))), "unrecorded", "dm0"),
        (lambda w: changed(w, "replies", at(1, state="sending")), "unsent", "outbox 2"),
        (lambda w: changed(w, "rows", at(3, position=4)), "rows doubled", "conversation 0"),
        (lambda w: without(w, "changes", 0), "memory unlogged", "working_context 1"),
        (lambda w: changed(w, "changes", at(0, turn=None)), "memory unattributed", "working_context 1"),
        (lambda w: changed(w, "changes", at(0, turn=5)), "memory unattributed", "working_context 1"),
        (lambda w: changed(w, "memories", at(0, sources=0)), "memory unsourced", "working_context 1"),
        (lambda w: changed(w, "memories", also(Memory("passage", 1, 0, "The walk of P0-1", None, 0))), "memory doubled", "P0-1"),
        (lambda w: changed(w, "erased", lambda _: frozenset({"P0"})), "not erased", "P0-1"),
        (lambda w: changed(w, "typing", lambda _: ("dm1",)), "typing left", "dm1"),
    ],
)
def test_a_planted_fault_is_found(plant: Callable[[World], World], kind: str, subject: str) -> None:
    assert (kind, subject) in {(finding.kind, finding.subject) for finding in audit(*plant(well()))}


@pytest.mark.parametrize(
    "name", ["jobs", "wake flags", "running turns", "leases", "processes", "Redis keys", "rows without a vector"]
)
def test_what_is_left_over_is_told_line_by_line(name: str) -> None:
    seen, kept = well()
    found = audit(seen, replace(kept, leftovers={name: ("one", "two"), "nothing of": ()}))
    assert [(finding.kind, finding.subject) for finding in found] == [
        (f"left over: {name}", "one"),
        (f"left over: {name}", "two"),
    ]


@pytest.mark.parametrize("line", sorted(LINES))
def test_what_the_bot_says_while_somebody_waits_is_no_surplus(line: str) -> None:
    world = changed(well(), "shown", also(Shown("b99", "dm0", line, 1.2)))
    assert audit(*changed(world, "replies", also(Reply(99, 1, "dm0", "sent", line, "b99")))) == []


def test_the_apology_stands_for_an_answer() -> None:
    assert audit(*apologised(well())) == []


def test_several_messages_may_share_one_answer() -> None:
    """A burst: the second message's words are answered together with the first one's."""
    seen, kept = changed(without(well(), "shown", 1), "shown", at(0, text="re: P0-1 | P0-2", at=2.5))
    seen, kept = without((seen, kept), "replies", 1)
    assert audit(seen, kept) == []


def test_what_the_platform_never_handed_over_is_nobodys_fault() -> None:
    world = changed(lost_with_its_turn(without(well(), "events", 2)), "said", at(1, accepted=False))
    seen, kept = changed(world, "events", lambda events: tuple(event for event in events if event.message_id != "m2"))
    assert "P0-2" not in {finding.subject for finding in audit(seen, kept)}


@pytest.mark.parametrize(("handed", "wrong"), [(None, True), (1.5, True), (2.5, False)])
def test_an_order_is_owed_only_where_the_platform_knew_that_the_earlier_one_was_taken(handed: float | None, wrong: bool) -> None:
    world = changed(well(), "said", at(0, handed=handed))
    world = changed(changed(world, "events", at(0, seq=2)), "events", at(1, seq=1))
    assert ("out of order" in tally(audit(*world))) is wrong


def test_findings_are_counted_by_their_kind() -> None:
    found = audit(*lost_with_its_turn(well()))
    assert tally(found) == {"words lost": 1, "lost": 1}
    assert "P0-2" in str(found[0])


@pytest.mark.parametrize(("turn", "wrong"), [(1, True), (2, False)])
def test_within_one_turn_the_order_is_owed_however_two_connections_handed_it_over(turn: int, wrong: bool) -> None:
    world = changed(well(), "said", at(0, handed=2.5))
    world = changed(changed(world, "events", at(1, turn=turn)), "rows", at(0, position=9))
    assert ("out of order" in tally(audit(*world))) is wrong
