"""Completion of ids and profiles in a shell, by one request to the running server.

A person waits for the Tab key, so nothing slow is imported, nothing is started, and no error is shown.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import quote, urlsplit

import typer
from typer.models import ArgumentInfo, OptionInfo

from roost.cli.app.logins import VARIABLE, Logins

if TYPE_CHECKING:
    from http.client import HTTPConnection

TIMEOUT = 1.0
MOST = 200
MOST_BYTES = 4_000_000
_SAFE = re.compile(r"[\w.@+-]+", re.ASCII)
"""Ids that a shell takes as they are; others are not offered."""
_UNSAFE = re.compile(r"[^\w .,!?-]")
"""Characters left out of descriptions: zsh evaluates them."""


@dataclass(frozen=True, slots=True)
class CompletedIds:
    """Route of a list, the field with the id, and the field that describes an item."""

    path: str
    id_field: str
    about: str = ""
    items: str = "items"
    is_name: bool = False
    """True if people choose it, so that no part of it stands for it."""


AGENTS = CompletedIds("agents", "agentId", "state", is_name=True)
TALKS = CompletedIds("talks", "talkSessionId", "title")
PROFILES = CompletedIds("profiles", "name", "description", "profiles", is_name=True)
ARGUMENTS = {
    "AGENT": AGENTS,
    "TALK": TALKS,
    "TASK": CompletedIds("tasks", "taskId", "prompt"),
    "SCHEDULE": CompletedIds("schedules", "name", "prompt", is_name=True),
    "MAIL": CompletedIds("mail", "mailId", "subject"),
    "MEETING": CompletedIds("meetings", "meetingId", "topic"),
    "RUN": CompletedIds("runs", "runId", "kind"),
    "APPROVAL": CompletedIds("approvals", "approvalId", "tool"),
    "LETTER": CompletedIds("dead-letters", "letterId", "reason"),
    "TOKEN": CompletedIds("tokens", "tokenId", "name"),
    "WEBHOOK": CompletedIds("webhooks", "webhookId", "name"),
    "HOOK": CompletedIds("hooks", "hookId", "name"),
}
"""Lists by the name of an argument."""
OPTIONS = {
    "--agent": AGENTS,
    "--as": AGENTS,
    "--from": AGENTS,
    "--with": AGENTS,
    "--optional": AGENTS,
    "--player": AGENTS,
    "--moderator": AGENTS,
    "--talk": TALKS,
    "--run": ARGUMENTS["RUN"],
    "--profile": PROFILES,
    "--brain": PROFILES,
}


def add_completion(parameters: Iterable[inspect.Parameter]) -> None:
    """Let a shell complete the arguments and options of a command that are ids or profiles."""
    for one in parameters:
        for info in get_args(one.annotation):
            if isinstance(info, ArgumentInfo | OptionInfo) and info.autocompletion is None:
                source = _source(info)
                info.autocompletion = None if source is None else _completer(source)


def _source(info: ArgumentInfo | OptionInfo) -> CompletedIds | None:
    if isinstance(info, OptionInfo):
        names = (info.default, *(info.param_decls or ()))  # the first name is where a default could be
        return next((OPTIONS[name] for name in names if isinstance(name, str) and name in OPTIONS), None)
    is_id = (info.help or "").startswith(("Id of", "Name or id of"))
    return ARGUMENTS.get(info.metavar or "") if is_id else None


def _completer(source: CompletedIds) -> Callable[[typer.Context, str], list[tuple[str, str]]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        from roost.cli.render.output import short_id

        try:
            found = list(_items(source, _Place(ctx)))
        except Exception:  # a shell must not show errors while a person types
            return []
        # Lists show the end of an id, so that it can be completed as well.
        ends = [(short_id(name), about) for name, about in found if incomplete and not source.is_name]
        return [one for one in (*found, *ends) if one[0].startswith(incomplete)]

    return complete


def _items(source: CompletedIds, place: _Place) -> Iterator[tuple[str, str]]:
    for one in place.ask(f"/api/v1/{source.path}?limit={MOST}")[source.items]:
        if _SAFE.fullmatch(name := str(one[source.id_field])):
            yield name, _UNSAFE.sub(" ", str(one.get(source.about) or ""))[:60].strip()


class _Place:
    """Server of the command that is being typed: the chosen one, or the one that runs on the store."""

    def __init__(self, ctx: typer.Context) -> None:
        import tomllib

        self._given = {**ctx.find_root().params, **{name: one for name, one in ctx.params.items() if one}}
        config = self._given.get("config") or os.environ.get("ROOST_CONFIG") or "roost.toml"
        self._file = tomllib.loads(Path(config).read_text()) if Path(config).exists() else {}

    def ask(self, path: str) -> Any:
        url, headers = self._address()
        parts = urlsplit(url)
        connection = self._connection(parts.scheme, parts.netloc)
        try:
            connection.request("GET", parts.path.rstrip("/") + path, headers={**headers, "Accept": "application/json"})
            return json.loads(connection.getresponse().read(MOST_BYTES))
        finally:
            connection.close()

    def _address(self) -> tuple[str, dict[str, str]]:
        if server := self._setting("server"):
            token = os.environ.get(VARIABLE) or Logins(self._data()).get(server.rstrip("/"))
            return server, {"Authorization": f"Bearer {token}"}
        running = self._running()
        user = {"Roost-User": quote(name, safe="")} if (name := self._setting("user")) else {}
        return running["url"], {"Authorization": f"Bearer {running['token']}", **user}

    def _running(self) -> Mapping[str, str]:
        store = self._setting("store") or f"sqlite:///{self._data() / 'roost.db'}"
        if store.startswith("sqlite:///"):
            lock = Path(store.removeprefix("sqlite:///")).resolve()
            found: Mapping[str, str] = json.loads(lock.with_name(f"{lock.name}.lock").read_text())
            return found
        return _on_another_store(self._given.get("config"), store)

    def _connection(self, scheme: str, netloc: str) -> HTTPConnection:
        import ssl
        from http.client import HTTPConnection, HTTPSConnection

        if scheme == "http":
            return HTTPConnection(netloc, timeout=TIMEOUT)
        trusted = ssl.create_default_context(cafile=self._setting("ca_file"))
        return HTTPSConnection(netloc, timeout=TIMEOUT, context=trusted)

    def _data(self) -> Path:
        base = os.environ.get("XDG_DATA_HOME")
        named = self._setting("data")
        return Path(named) if named else (Path(base) if base else Path.home() / ".local" / "share") / "roost"

    def _setting(self, name: str) -> str | None:
        found = self._given.get(name) or os.environ.get(f"ROOST_{name.upper()}") or self._file.get(name)
        return None if found is None else str(found)


def _on_another_store(config: Path | None, store: str) -> Mapping[str, str]:
    """Return the server that announced itself in a database; slower, since its driver is imported."""
    from roost.cli.app.connect import announced_server
    from roost.settings import load

    found = announced_server(load(config, store=store))
    return {"url": found.url, "token": found.token} if found else {}
