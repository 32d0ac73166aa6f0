"""The built-in rehearsal model: a deterministic, rule-based stand-in for a language model, for trying the parts and for tests.

It is served over OpenAI's HTTP protocol on loopback and sees nothing but the request, like any model: `rules` understands texts, `view` reads
a request, `policy` decides on the reply, `server` serves it. It says itself that it is no language model.
"""

from bot.rehearsal.server import MODEL, serve

__all__ = ["MODEL", "serve"]
