"""Discord on this machine: a server that speaks the real REST and gateway protocols over sockets, for tests.

    async with DiscordServer() as server:
        home = server.guild("Home")
        ada = server.person("Ada", home)
        ... start the bot with server.api_base, server.gateway and server.token ...
        await server.wait_connected()
        ada.ask(home.channel("general"), "Hello?")
        reply = await server.wait_for_message(home.channel("general"))

Where things are: `server` the object tests hold; `people` what people do; `world` what exists; `faults` what is wrong with the HTTP API;
`gateway` and `session` the WebSocket side with its faults (`server.hub`); `actions` and `places` change the world and dispatch;
`api` and the `routes_*` the HTTP side; `posting` and `permissions` what is refused; `payloads` and `intents` what the bot may see.
"""

from tests.servers.discord.faults import ALWAYS, Request
from tests.servers.discord.interactions import Interaction
from tests.servers.discord.people import Person
from tests.servers.discord.server import TOKEN, DiscordServer
from tests.servers.discord.session import Connection
from tests.servers.discord.world import Attachment, Channel, Guild, Member, Message, Role, User

__all__ = [
    "ALWAYS",
    "TOKEN",
    "Attachment",
    "Channel",
    "Connection",
    "DiscordServer",
    "Guild",
    "Interaction",
    "Member",
    "Message",
    "Person",
    "Request",
    "Role",
    "User",
]
