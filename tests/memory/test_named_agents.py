"""Every query on personal tables names its agent, so that agents can be spread over servers by their number.

What the bot asks by itself names it through the policies: row-level security adds the agent to whatever is asked. The functions that run
with their owner's rights are read here, statement by statement. What looks across people on purpose is listed with what it needs them for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import psycopg

from tests.conftest import Urls

ACROSS = {
    # the directory: who somebody is, found by a platform's names, which no agent is known for yet
    "agent_of": "finds or makes the agent of an account",
    "known_agent": "finds the agent of an account",
    "people": "the operator's list of people",
    "people_called": "an operator finds a person by name",
    "people_in": "counts people of a workspace",
    "not_quoted": "whose words are quoted nowhere",
    "reapply_erasures": "finds erased people after a restore",
    "reapply_decisions": "finds after a restore what people have decided since",
    "note_blocked": "a block is of no agent",
    "retain_erasures": "what is to be applied again, by age",
    "erased_yet_named": "whether an erased person is named anywhere",
    "link_take": "a code is typed by a second person",
    "link_answer": "both sides of a link, one of them by the code",
    # a platform's places and messages: what happened to a message that several people's agents may hold
    "locate": "whose messages an edit or a deletion is about",
    "locate_quotes": "in whose memory a message is quoted",
    "kept_messages": "which messages of a channel are here",
    "kept_within": "the same with the threads of the channel",
    "newest_messages": "up to where each channel was heard",
    "forget_quoted": "somebody's words in other people's memory",
    "quoted_words": "somebody's words in other people's memory, for themselves to see",
    "quoted_total": "how many those are",
    "retain_workspaces": "whoever came from a workspace that was left",
    "purge_erased": "places that nobody uses any more",
    # the engine: whose turn it is
    "claim_outbox": "the next reply of each channel",
    "doubt_sending": "replies that nobody is sending",
    "doubt_sending_but_of": "replies that dead processes were sending",
    "unwoken_agents": "agents without a job",
    "unembedded_agents": "agents with texts without a vector",
    "rezoned_agents": "agents in another time zone",
    "dead_letters": "the operator's list",
    "dead_reminders": "reminders that could not be said",
    "faulty_timers": "the operator's list",
    # sums for the operator
    "opener_costs": "what openers cost",
    "spent_on": "what a day cost",
    "usage_since": "what models cost",
    "unreachable_people": "the operator's list",
}
"""Functions that look across people, and for what."""
BY_A_ROW_OF_THE_AGENT = {
    "claim_turn",
    "empty_sent",
    "end_step",
    "finish_turn",
    "forget_reach",
    "release_turn",
    "merge_agents",
    "redirect_timed",
    "replay_dead",
    "retain",
    "mark_unreachable",
    "link_try",
    "search_messages",
    "search_passages",
}
"""Functions of one agent with statements that name a row which they have found, or are given, as the agent's: a turn, an event, a reply."""
_TOUCHED = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO|USING)\s+(?:ONLY\s+)?(\w+)", re.IGNORECASE)
_NAMED = re.compile(
    r"(?:\bagent_id|current_agent\(\)|\w*agent)\)?\s*(?:=|<>|IN\b|IS NOT DISTINCT)"
    r"|=\s*(?:ANY\s*)?\(?(?:SELECT\s+)?(?:\w+\.)?\w*agent(?:_id|s)?\b"
    r"|\bINTO\s+\w+\s*(?:AS \w+\s*)?\([^)]*\bagent_id\b",
    re.IGNORECASE,
)
_AGENTS_OWN = re.compile(r"\b(?:agents|a)?\.?id\s*(?:=|IN\b)|\bINTO agents\b", re.IGNORECASE)


def nameless(body: str, personal: Sequence[str]) -> Iterator[str]:
    """The statements of a function's body that touch a personal table and name no agent."""
    for statement in re.sub(r"--[^\n]*", "", body).split(";"):
        touched = {table.lower() for table in _TOUCHED.findall(statement)} & set(personal)
        named = _NAMED.search(statement) or (touched == {"agents"} and _AGENTS_OWN.search(statement))
        if touched and not named:
            yield " ".join(statement.split())


def found_in(owner_url: str, *planted: str) -> dict[str, list[str]]:
    """By function, what names no agent; `planted` are statements run before."""
    with psycopg.connect(owner_url, options="-c search_path=keepsake") as connection:
        for statement in planted:
            connection.execute(statement.encode())
        personal = _column(
            connection,
            """SELECT DISTINCT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
               WHERE c.relnamespace = 'keepsake'::regnamespace AND c.relkind IN ('r', 'p') AND a.attname = 'agent_id'""",
        )
        functions = connection.execute(
            "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'keepsake'::regnamespace AND prosecdef"
        ).fetchall()
        connection.rollback()
    found = {name: list(nameless(body, [*personal, "agents"])) for name, body in functions}
    return {name: statements for name, statements in found.items() if statements}


def _column(connection: psycopg.Connection, statement: str) -> list[str]:
    return [row[0] for row in connection.execute(statement.encode()).fetchall()]


def test_every_function_names_the_agent_or_is_known_to_look_across(urls: Urls) -> None:
    found = found_in(urls.owner)
    unknown = {name: statements for name, statements in found.items() if name not in {*ACROSS, *BY_A_ROW_OF_THE_AGENT}}
    assert not unknown
    assert {*ACROSS, *BY_A_ROW_OF_THE_AGENT} <= set(found), "listed without need"


def test_a_planted_query_without_the_agent_is_found(urls: Urls) -> None:
    body = (
        "SELECT count(*) FROM messages m JOIN places p ON p.id = m.place_id WHERE m.content = p_text AND m.agent_id IS NOT NULL"
    )
    planted = f"CREATE FUNCTION planted(p_text text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ {body} $$"
    assert found_in(urls.owner, planted)["planted"] == [body]
    fine = planted.replace("m.agent_id IS NOT NULL", "m.agent_id = current_agent()")
    assert "planted" not in found_in(urls.owner, fine)


def test_the_policies_name_the_agent_in_everything_else(urls: Urls) -> None:
    with psycopg.connect(urls.owner) as connection:
        rows = connection.execute(
            """SELECT tablename, policyname, coalesce(qual, '') || coalesce(with_check, '') FROM pg_policies
               WHERE schemaname = 'keepsake' AND 'keepsake_bot' = ANY (roles) AND tablename IN (
                 SELECT table_name FROM information_schema.columns WHERE table_schema = 'keepsake' AND column_name = 'agent_id')"""
        ).fetchall()
    assert len(rows) > 40
    for table, policy, condition in rows:
        assert "current_agent()" in condition, f"{policy} of {table}"
