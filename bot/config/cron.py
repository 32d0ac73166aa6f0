"""Cron expressions: five fields, as APScheduler reads them."""

from __future__ import annotations

import re
from datetime import UTC

from apscheduler.triggers.cron import CronTrigger


def trigger_of(cron: str) -> CronTrigger:
    """The trigger of five cron fields. Raises ValueError, with what is wrong with them.

    Days of the week must be named, as their numbers mean other days to APScheduler (0 is Monday) than to cron.
    """
    fields = cron.split()
    if len(fields) != 5:
        raise ValueError("must be five cron fields: minute, hour, day of month, month, day of week; for example `0 18 * * sun`")
    if re.search(r"\d", fields[4]):
        raise ValueError("must name the days of the week (mon, tue, ... sun), as their numbers are ambiguous")
    # Reckoned on the wall clock, as if it were UTC: how clock changes count is decided in one place, `instant`.
    return CronTrigger.from_crontab(cron, timezone=UTC)
