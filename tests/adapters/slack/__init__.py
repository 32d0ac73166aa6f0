"""Tests of the Slack adapter's parts; the whole is tested in `tests/scenarios/` against a local server."""
