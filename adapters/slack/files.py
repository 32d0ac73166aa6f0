"""Attachments on Slack: had with the bot's token, which is kept on redirects within Slack and given to nobody else."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp

from adapters import files, images
from adapters.base import Image
from adapters.files import File, described
from adapters.slack.people import FAILURES
from adapters.slack.workspaces import Workspace

log = logging.getLogger(__name__)

REDIRECTS = 5
SIGNED_OUT = "Slack shows a sign-in page instead of it: the app lacks the scope files:read"


class SignedOut(Exception):
    """A page of Slack's came instead of the file."""


async def files_of(event: Mapping[str, Any], workspace: Workspace) -> list[File]:
    """What is attached and still there. Of a file from elsewhere the event tells only its id."""
    found = []
    for one in event.get("files") or []:
        if one.get("mode") == "tombstone":
            continue
        if one.get("file_access") == "check_file_info" or "name" not in one:
            try:
                one = (await workspace.client.files_info(file=one["id"]))["file"]
            except FAILURES as error:
                log.info("files.info failed: %s", type(error).__name__)
        found.append(file_of(one))
    return found


def there(event: Mapping[str, Any]) -> set[str]:
    """The ids of the files that a message still has."""
    return {str(one.get("id")) for one in event.get("files") or [] if one.get("mode") != "tombstone"}


def file_of(one: Mapping[str, Any]) -> File:
    """A file as Slack describes it."""
    name = str(one.get("name") or one.get("title") or "a file")
    url = str(one.get("url_private_download") or one.get("url_private") or "")
    return File(name, int(one.get("size") or 0), url, one.get("mimetype") or None)


async def told(attached: Sequence[File], cap: int, workspace: Workspace, session: aiohttp.ClientSession, base: str) -> list[str]:
    """Every file as text for the message; `cap` is the most bytes read of one, `base` the API's address, whose host is trusted too."""
    hosts = {urlsplit(base).netloc}
    signed_out: list[File] = []

    async def read(file: File, most: int) -> bytes | None:
        try:
            return await _beginning(session, file, most, workspace.token, hosts)
        except SignedOut:
            signed_out.append(file)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            log.warning("an attachment could not be read: %s", type(error).__name__)
        return None

    lines = await files.told(attached, cap, read)
    if signed_out:
        log.warning("Slack: an attachment could not be read: %s", SIGNED_OUT)
    return [
        f"{line}\n[{described(file)[1:-1]} could not be read]"
        if file in signed_out and line != described(file)
        else f"{line[:-1]}, could not be read]"
        if file in signed_out
        else line
        for file, line in zip(attached, lines, strict=True)
    ]


async def seen(
    attached: Sequence[File], cap: int, workspace: Workspace, session: aiohttp.ClientSession, base: str
) -> tuple[Image, ...]:
    """The pictures of a message for a model that sees, of at most `cap` bytes each; 0: none."""
    shown = []
    for file in images.wanted(attached, cap):
        try:
            content = await _beginning(session, file, cap, workspace.token, {urlsplit(base).netloc})
        except (SignedOut, aiohttp.ClientError, TimeoutError, ValueError) as error:
            log.warning("a picture could not be read: %s", type(error).__name__)
            continue
        if content and (picture := images.image(file.name, content)) is not None:
            shown.append(picture)
    return tuple(shown)


async def _beginning(session: aiohttp.ClientSession, file: File, cap: int, token: str, hosts: set[str]) -> bytes | None:
    """The first bytes of a file. Raises SignedOut when it is a page of Slack's."""
    url = file.url
    for _ in range(REDIRECTS):
        headers = {"Authorization": f"Bearer {token}"} if _trusted(url, hosts) else {}
        async with session.get(url, headers=headers, allow_redirects=False) as response:
            if response.status in (301, 302, 303, 307, 308) and "Location" in response.headers:
                url = urljoin(url, response.headers["Location"])
                continue
            if response.status != 200:
                log.warning("an attachment could not be read: status %d", response.status)
                return None
            if response.content_type == "text/html" and (file.content_type or "").partition(";")[0] != "text/html":
                raise SignedOut
            content = b""
            while len(content) < cap and (chunk := await response.content.read(cap - len(content))):
                content += chunk
            return content
    return None


def _trusted(url: str, hosts: set[str]) -> bool:
    """Whether an address is Slack's, which may see the token."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.netloc in hosts or (
        parts.scheme == "https" and (host == "slack.com" or host.endswith((".slack.com", ".slack-files.com")))
    )
