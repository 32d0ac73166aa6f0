"""Tests of the Discord adapter's parts; the whole is tested in `tests/scenarios/` against a local server."""

import warnings

with warnings.catch_warnings():
    # discord.py imports audioop, which warns on Python 3.11 and 3.12.
    warnings.simplefilter("ignore", DeprecationWarning)
    import discord  # noqa: F401
