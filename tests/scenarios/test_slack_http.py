"""Slack over HTTP: signed events, forged ones, and workspaces that install the app themselves."""

from __future__ import annotations

import json

import aiohttp

from tests.scenarios.discord_bot import echo
from tests.scenarios.slack_bot import bot_on, slack_server
from tests.servers.model import ScriptedModel
from tests.waiting import until


async def test_events_commands_and_buttons_over_http_and_what_is_refused() -> None:
    async with slack_server(url="http://127.0.0.1:1") as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        ada = server.person("Ada", acme)
        async with bot_on(server, model, acme, http=True) as bot:
            await bot.exchange(ada.dm, lambda: ada.say(None, "hello"), "re: hello")
            view = await server.wait_for_answer(ada.command("/keepsake help"))
            assert "/memory forget" in view.texts[0]
            ada.open_home("home")
            await server.wait_for_home(ada)
            verified = await server.verify_url()
            assert verified.status == 200
            assert "challenge" in verified.body or len(verified.body) >= 16
            body = json.dumps({"type": "event_callback", "event": {"type": "message", "text": "forged"}})
            before = len(bot.lines)
            assert (await server.post_raw(body, signature="v0=" + "0" * 64)).status == 401
            assert (await server.post_raw(body, signature="v0=ümläut")).status == 401
            assert (await server.post_raw(body, age=600)).status == 401
            assert (await server.post_raw(body, signed=False)).status == 401
            assert (await server.post_raw(b"\xff\xfe")).status == 400
            assert (await server.post_raw(b"x" * 1_010_000)).status == 413
            await until(lambda: len([line for line in bot.lines[before:] if "was refused" in line]) == 6)
            assert not any('forged"' in line for line in bot.lines)
            # A retry makes no turn.
            server.redeliver(server.delivered("message")[0])
            await server.wait_settled()
            await bot.exchange(ada.dm, lambda: ada.say(None, "next"), "re: next")
            assert len(server.messages(ada.dm, bot=True)) == 2
            host, port = bot.address.split(":")
            async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}/") as response:
                assert response.status == 404


async def test_workspaces_install_the_app_themselves() -> None:
    async with slack_server(url="http://127.0.0.1:1", retries=(0.3,) * 8) as server, ScriptedModel(policy=echo) as model:
        acme = server.team("Acme")
        ada = server.person("Ada", acme)
        settings = {
            "SLACK_PUBLIC_URL": "http://127.0.0.1:1",
            "SLACK_CLIENT_ID": server.app.client_id,
            "SLACK_CLIENT_SECRET": server.app.client_secret,
        }
        async with bot_on(server, model, http=True, start=False, **settings) as bot:
            bot.settings |= {
                name: value for name, value in settings.items() if name in ("SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET")
            }
            await bot.start()
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
                async with browser.get(f"http://{bot.address}/slack/install") as page:
                    assert page.status == 200
                    shown = await page.text()
                    cookie = page.headers["Set-Cookie"].split(";")[0]
                state = shown.split("state=")[1].split("&")[0].split('"')[0]
                back = f"http://{bot.address}/slack/oauth_redirect"
                sent = {"Cookie": cookie}
                async with browser.get(back, params={"code": "x", "state": "forged"}, headers=sent) as page:
                    assert page.status in (400, 401)
                async with browser.get(back, params={"code": server.oauth_code(acme), "state": state}, headers=sent) as page:
                    assert page.status == 200, await page.text()
                async with browser.get(back, params={"code": server.oauth_code(acme), "state": state}, headers=sent) as page:
                    assert page.status == 401  # single-use
            await bot.exchange(ada.dm, lambda: ada.say(None, "hello"), "re: hello")
            await bot.stop()
            await bot.start()
            await bot.exchange(ada.dm, lambda: ada.say(None, "again"), "re: again")
            server.uninstall(acme)
            await bot.heard("no longer accepts")
            await server.wait_settled()
