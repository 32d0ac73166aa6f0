"""files.*, uploads, and downloads that want the token."""

from __future__ import annotations

import mimetypes

from aiohttp import web

from tests.servers.discord.faults import Answer
from tests.servers.slack import payloads
from tests.servers.slack.actions import Actions, Draft
from tests.servers.slack.api import Api, Call
from tests.servers.slack.errors import SlackError, invalid_arguments
from tests.servers.slack.world import File, Json

LOGIN = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body>Sign in to your workspace</body></html>"


class FileMethods:
    """`other` is the host that downloads may be redirected to, `elsewhere` its address."""

    def __init__(self, api: Api, actions: Actions) -> None:
        self.other = web.Application()
        self.elsewhere = ""
        self._api = api
        self._actions = actions
        api.add("files.info", self.info, "files:read")
        api.add("files.delete", self.delete, "files:write")
        api.add("files.getUploadURLExternal", self.upload_url, "files:write")
        api.add("files.completeUploadExternal", self.complete, "files:write")
        api.app.router.add_post("/upload/{id}", self.upload)
        api.app.router.add_get("/files-pri/{id}/{name:.*}", self.download)
        for app in (api.app, self.other):
            app.router.add_get("/moved/{id}/{name:.*}", self.download)

    def info(self, call: Call) -> Json:
        file = self._file(call)
        return {
            "file": payloads.full_file_json(file, self._actions.base),
            "comments": [],
            "response_metadata": {"next_cursor": ""},
        }

    def delete(self, call: Call) -> None:
        file = self._file(call)
        if file.user is not call.bot:
            raise SlackError("cant_delete_file")
        del call.world.files[file.id]

    def upload_url(self, call: Call) -> Json:
        name, length = call.need("filename"), call.number("length", 0)
        if length <= 0:
            raise invalid_arguments("length must be positive")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        file = File(call.world.id("F"), name, b"\0" * length, kind, call.bot, uploaded=False)
        call.world.files[file.id] = file
        return {"upload_url": f"{self._actions.base}/upload/{file.id}", "file_id": file.id}

    def complete(self, call: Call) -> Json:
        wanted = call.parsed("files")
        if not wanted:
            raise invalid_arguments("missing required field: files")
        files = [call.world.files.get(one["id"]) for one in wanted]
        if any(file is None or not file.uploaded for file in files):
            raise SlackError("file_not_found")
        found = [file for file in files if file is not None]
        for file, one in zip(found, wanted, strict=True):
            file.title = one.get("title") or file.name
        if call.text("channel_id"):
            channel = call.channel("channel_id", inside=True)
            bot = call.bot_in(channel)
            draft = Draft(call.text("initial_comment") or "", files=found, subtype="file_share", bot_id=bot.bot_id)
            draft.thread_ts = call.text("thread_ts")
            self._actions.create(channel, bot, draft)
        return {"files": [payloads.full_file_json(file, self._actions.base) for file in found]}

    async def upload(self, http: web.Request) -> web.StreamResponse:
        file = self._actions.world.files.get(http.match_info["id"])
        log = self._api.logged("files.upload", None, {"id": http.match_info["id"]})
        content = await http.read()
        if http.content_type == "multipart/form-data":
            parts = [part.file.read() for part in (await http.post()).values() if isinstance(part, web.FileField)]
            content = parts[0] if parts else content

        def run() -> Answer:
            if file is None or len(content) != len(file.content):
                return Answer(400, "the length is not the one announced")
            file.content, file.uploaded = content, True
            return Answer(200, f"OK - {len(content)}")

        return await self._api.around(http, log, run)

    async def download(self, http: web.Request) -> web.StreamResponse:
        """The file to who shows the token of an installation that may read files; a login page with status 200 to anybody else."""
        file = self._actions.world.files.get(http.match_info["id"].rpartition("-")[2])
        right = self._right(http)
        if file is not None:
            file.downloads.append((http.path, right))
        log = self._api.logged("files.download", None, {"path": http.path})
        response = web.Response(text=LOGIN, content_type="text/html")

        def run() -> Answer:
            nonlocal response
            response = self._served(http, file, right=right)
            return Answer(response.status, "")

        answered = await self._api.around(http, log, run)
        return response if answered.status == response.status else answered

    def _served(self, http: web.Request, file: File | None, *, right: bool) -> web.Response:
        if file is None or file.served == "gone":
            return web.Response(status=404, text=LOGIN, content_type="text/html")
        if not right or file.served == "login":
            return web.Response(text=LOGIN, content_type="text/html")
        if file.served in ("redirect", "elsewhere") and not http.path.startswith("/moved/"):
            base = self.elsewhere if file.served == "elsewhere" else self._actions.base
            return web.Response(status=302, headers={"Location": f"{base}/moved/{file.id}/{file.name}"})
        return web.Response(body=file.content, headers={"Content-Type": file.served_type or file.mimetype})

    def _right(self, http: web.Request) -> bool:
        token = self._actions.world.tokens.get(http.headers.get("Authorization", "").removeprefix("Bearer "))
        return token is not None and token.refused is None and "files:read" in token.scopes

    def _file(self, call: Call) -> File:
        file = call.world.files.get(call.need("file"))
        if file is None:
            raise SlackError("file_not_found")
        return file
