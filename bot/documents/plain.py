"""Readers of what is text as it stands: text, Markdown, tables in text, and e-mail."""

from __future__ import annotations

import csv
import email
import email.policy
import io
import re
from collections.abc import Iterator
from email.message import EmailMessage

from bot.documents import markup
from bot.documents.blocks import Block, Limits, Tell, Unreadable, cells

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_HEADERS = ("Subject", "From", "To", "Date")


def decoded(data: bytes) -> str:
    """Bytes as text: by their mark, as UTF-8, else as Western Windows text, in which every byte is something."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return data.decode("cp1252" if encoding == "utf-8" else encoding, "replace")


def text(data: bytes, limits: Limits, tell: Tell) -> Iterator[Block]:  # noqa: ARG001 - every reader is called so
    """Paragraphs, parted by blank lines."""
    for paragraph in re.split(r"\n\s*\n", decoded(data).replace("\r\n", "\n").replace("\r", "\n")):
        yield Block(paragraph.strip("\n"))


def markdown(data: bytes, limits: Limits, tell: Tell) -> Iterator[Block]:  # noqa: ARG001 - as above
    """Headings, and everything else as it is written: a list or a table stays one."""
    from markdown_it import MarkdownIt

    lines = decoded(data).replace("\r\n", "\n").split("\n")
    tokens = MarkdownIt("commonmark").enable("table").parse("\n".join(lines))
    for number, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        if token.type == "heading_open":
            yield Block(tokens[number + 1].content, level=int(token.tag[1:]))
        else:
            yield Block("\n".join(lines[token.map[0] : token.map[1]]).strip("\n"), row=token.type == "table_open")


def table(data: bytes, limits: Limits, tell: Tell) -> Iterator[Block]:  # noqa: ARG001 - as above
    """The rows of a table in text, whatever parts its cells."""
    written = decoded(data)
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(written[:4096], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        for row in csv.reader(io.StringIO(written, newline=""), dialect):
            yield Block(cells(row), row=True)
    except csv.Error:
        raise Unreadable("broken") from None


def mail(data: bytes, limits: Limits, tell: Tell) -> Iterator[Block]:
    """Who wrote what to whom; of attachments their names alone."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    if not any(message.get(name) for name in _HEADERS):
        raise Unreadable("broken")
    if (subject := str(message.get("Subject") or "")).strip():
        yield Block(subject, level=1)
    yield Block("\n".join(f"{name}: {message[name]}" for name in _HEADERS[1:] if message.get(name)))
    body = message.get_body(("plain", "html"))
    if body is not None:
        content = body.get_content()
        written = content if isinstance(content, bytes) else str(content).encode("utf-8", "replace")
        yield from (markup.html if body.get_content_subtype() == "html" else text)(written, limits, tell)
    for attached in message.iter_attachments():
        yield Block(f"Attachment: {attached.get_filename() or attached.get_content_type()}")
