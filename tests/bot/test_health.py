"""Counters, states, and the probes over HTTP."""

from datetime import UTC, datetime

import aiohttp

from bot.health import Health, address, serving
from tests.servers.model import unused_port

NOW = datetime(2026, 11, 30, tzinfo=UTC)


async def test_states_keep_the_class_of_an_error_only() -> None:
    health = Health()

    async def broken() -> None:
        raise ConnectionRefusedError("secret")

    async def fine() -> None:
        return None

    assert (await health.check("redis", broken, NOW)).error == "ConnectionRefusedError"
    assert not health.services["redis"].well
    assert (await health.check("redis", fine, NOW)).well
    health.failed("model", "ModelUnavailable", NOW)
    assert health.services["model"].error == "ModelUnavailable"


def test_reasons_are_counted_most_frequent_first() -> None:
    health = Health()
    for reason in ("duplicate", "accepted", "accepted"):
        health.count(reason)
    assert list(health.counts.items()) == [("accepted", 2), ("duplicate", 1)]


async def test_probes() -> None:
    health, well = Health(), True
    health.count("accepted")
    port = unused_port()

    async def ready() -> bool:
        return well

    async with serving(health, f"127.0.0.1:{port}", ready), aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
        assert (await client.get("/live")).status == 200
        assert (await client.get("/ready")).status == 200
        assert await (await client.get("/ready")).text() == "ready\n"
        health.timers(NOW, None, 2)
        assert await (await client.get("/ready")).text() == "ready\ntimers put off by a fault: 2\n"
        well = False
        for path in ("/ready", "/readyz"):
            assert (await client.get(path)).status == 503
        metrics = await (await client.get("/metrics")).text()
        assert 'keepsake_reasons_total{reason="accepted"} 1.0' in metrics
        assert "keepsake_timers_put_off 2.0" in metrics


def test_addresses() -> None:
    assert address("[::1]:80") == ("::1", 80)
    assert address("localhost:8080") == ("localhost", 8080)
