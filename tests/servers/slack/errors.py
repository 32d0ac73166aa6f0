"""Slack's refusals."""

from __future__ import annotations

from tests.servers.slack.world import Json


class SlackError(Exception):
    """`ok: false` with one of Slack's error codes; the HTTP status is 200 unless it is a rate limit."""

    def __init__(self, code: str, **extra: object) -> None:
        super().__init__(code)
        self.body: Json = {"ok": False, "error": code, **extra}


def invalid_blocks(*reasons: str) -> SlackError:
    return SlackError(
        "invalid_blocks", errors=list(reasons), response_metadata={"messages": [f"[ERROR] {one}" for one in reasons]}
    )


def invalid_arguments(reason: str) -> SlackError:
    return SlackError("invalid_arguments", response_metadata={"messages": [f"[ERROR] {reason}"]})
