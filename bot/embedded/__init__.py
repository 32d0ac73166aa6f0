"""The servers inside: a real PostgreSQL and a real Redis, run by the bot in its data folder.

    supervisor  attach and release: who starts, who joins, who stops, all under the folder's lock
    lease       which processes use the servers
    folder      the data folder and what it remembers
    accounts    under which account the servers run (root cannot run PostgreSQL)
    programs    where the servers' programs are
    postgres    PostgreSQL: make, start, stop
    redis       Redis: start, stop
    provision   roles, database and extensions, for an external server too
    errors      what the operator reads when it fails

Everything here blocks; call it before the event loop runs, or in a thread.
"""

from bot.embedded.errors import EmbeddedError
from bot.embedded.provision import provision
from bot.embedded.supervisor import Lease, Servers, answer, attach, servers

__all__ = ["EmbeddedError", "Lease", "Servers", "answer", "attach", "provision", "servers"]
