"""The engine's settings; all durations are seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What the operator may choose has no default here but in the configuration; the rest is as measured, and shortened in tests."""

    # Inbox and claim
    burst: float
    """How long after a message another one of the same burst is waited for; 0: never."""
    burst_cap: float
    """The most that a burst may keep its first message waiting."""
    coalesce: int = 10
    """The most events of one turn: enough for a burst, few enough to be answered and to fit the context together."""

    patience: float
    """How long people wait before they hear that it takes longer."""

    # Failure
    max_attempts: int
    """Claims without a clean exit after which a turn is poison."""
    give_up: float
    """Age of the oldest event at which a turn that cannot go on becomes a dead letter."""
    own_try: float = 3_600.0
    """What a turn gets at least, however old its events: it may be a replayed letter, or have waited behind another."""
    retry_away: float = 1.0
    """The most that is waited after the database was away, however often it was: it is back, or the retry could not have been noted."""
    retry_first: float = 1.0
    retry_cap: float = 60.0
    retry_longest: float = 900.0
    """The longest wait that is taken from the other side's own suggestion."""

    # Worker
    concurrency: int
    poll: float = 0.25
    heartbeat: float = 10.0
    stalled: float = 30.0
    shutdown_grace: float
    release_within: float = 5.0
    """The most that handing back one turn may take while the process stops."""
    hand_back: float = 60.0
    """How long one wake-up keeps an agent that always has more to do, before others get their chance."""
    restart_first: float = 0.5
    restart_cap: float = 3.0

    # Upkeep
    reap_every: float = 2.0
    steady_after: float = 5.0
    """How long somebody has to have been connected before others count as gone: a crash of the server takes everybody's connection."""
    sweep_every: float = 30.0
    tell_every: float = 5.0
    clean_every: float = 86_400.0
    keep_jobs_hours: int = 168

    # Outbox
    outbox_poll: float = 1.0
    sends_at_once: int = 20
    send_timeout: float = 30.0
    doubtful_after: float = 60.0
    """Age at which a row marked as being sent counts as left behind by a dead sender; above `send_timeout`."""
