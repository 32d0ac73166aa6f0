"""Slack on this machine: a server that speaks the real Web API and Socket Mode over sockets and sends signed HTTP events, for tests.

    async with SlackServer() as server:
        acme = server.team("Acme")                             # a workspace with the app installed: acme.bot_token, acme.bot
        ada = server.person("Ada", acme, tz="Europe/Berlin")
        general = server.channel(acme, "general", ada)         # public, with the bot in it; private=True, mpim=True, bot=False
        ... start the bot with server.api_base, acme.bot_token, and server.app_token (Socket Mode) or server.signing_secret (HTTP) ...
        await server.wait_connected()                          # in HTTP mode: server.http_mode("http://127.0.0.1:PORT/slack/events")
        hello = ada.say(None, "Hello")                         # None is ada.dm; ada.ask(general, "Hello?") mentions the bot
        reply = await server.wait_for_message(ada.dm)          # .text .blocks .thread_ts .metadata .notifies .shown
        menu = ada.command("/keepsake memory view")            # an Interaction: .answers, .acknowledged_at, .failed, .modal
        await server.wait_for_answer(menu)

People (`Person`): say, ask, edit, delete, unfurl, react, file, open_home, look_at, open_assistant, press_stop, command, press, submit, close,
join_team, change, set_dnd, join, leave; `thread=` takes a message; `ask(order="mention_first", event_ts_only=True)` picks how the twins come.
Others: `server.bot_says(channel, text, webhook=...)`, `server.event(body, team)` for any event.
Places (`server.places`): archive, unarchive, delete, rename, make_private, make_public, change_id, share, unshare, invite_bot, remove_bot,
join, leave, install.
Apps: `server.uninstall(team)`, `server.revoke(team)`, `server.oauth_code(team)`, `SlackServer(manifest=...)`, `server.another_app()` with
`server.team(name, app=...)`. Grid: `server.enterprise(name)`.
Faults: `server.faults` (status, error, rate_limit, bucket, lose_answer, cut, delay, hold, hang; by method such as "chat.postMessage", or "*",
"response_url", "files.download"), `server.hub` (deafen, silence, warn, refresh, disable, close, cut), `server.ack_timeout`, `server.retries`,
`server.redeliver(delivery)`, `server.down()`, `server.end_streams()`, `server.streams.stream_life`, `server.interactions.trigger_life`.
HTTP only: `await server.post_raw(body, signature="v0=...", age=seconds, signed=False)`, `await server.verify_url()`.
Records: `server.calls` (every API call: .method .args .ok .error .status .answer .at .answered_at), `server.deliveries` (every event: .payload
.event .attempts .acknowledged .latency), `server.statuses`, `server.status_log`, `server.sessions`, `server.prompts`, `server.ephemerals`,
`server.home(person)`, `server.messages(channel)`.
Waiting: until, wait_for_message, wait_for_ephemeral, wait_for_answer, wait_for_modal, wait_for_home, wait_for_call, wait_for_delivery,
wait_settled, wait_connected.

Where things are: `server` the object tests hold, `watching` the half of it that looks; `people` what people do (`typing_in` and `pressing` are
its parts); `world` what exists; `app` the app's registration; `actions` and `places` change the world and tell the app; `delivery` what is
sent, when and again, over `socket_mode` or `http_mode`; `interactions` commands, buttons, modals, response_urls; `api` and the `methods_*`
the HTTP side; `blocks` what is refused; `payloads` Slack's shapes; `faults`.
"""

from tests.servers.discord.faults import ALWAYS
from tests.servers.slack.app import App
from tests.servers.slack.delivery import Attempt, Delivery
from tests.servers.slack.faults import ApiCall
from tests.servers.slack.interactions import Interaction
from tests.servers.slack.people import Person
from tests.servers.slack.server import SlackServer
from tests.servers.slack.socket_mode import Connection
from tests.servers.slack.world import Channel, Enterprise, File, Message, Team, User, View

__all__ = [
    "ALWAYS",
    "ApiCall",
    "App",
    "Attempt",
    "Channel",
    "Connection",
    "Delivery",
    "Enterprise",
    "File",
    "Interaction",
    "Message",
    "Person",
    "SlackServer",
    "Team",
    "User",
    "View",
]
