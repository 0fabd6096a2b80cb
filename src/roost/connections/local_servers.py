"""Search for model servers on this machine: Ollama, and others with OpenAI's protocol."""

from __future__ import annotations

import ipaddress
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from queue import Empty, Queue
from time import monotonic
from urllib.parse import urlsplit

from roost.connections.bounded_http import NoReply, ReplyRefused, get_json

PORTS: Mapping[str, int] = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
TIMEOUT = 1.5
"""Seconds for the reply of one server; all are asked at once."""
MOST_MODELS = 40
LONGEST_NAME = 150
OLLAMA = "Ollama"


@dataclass(frozen=True, slots=True)
class LocalServer:
    """Server that answered, with its models."""

    name: str
    url: str
    models: tuple[str, ...]

    @property
    def provider(self) -> str:
        """Return the provider that a model name begins with."""
        return "ollama" if self.name == OLLAMA else "openai"


def places(environ: Mapping[str, str] = os.environ) -> list[tuple[str, int]]:
    """Return the ports to ask, by the names of usual servers. `OLLAMA_HOST` may name another one on this machine."""
    known = dict(PORTS)
    if port := _port(environ.get("OLLAMA_HOST", "")):
        known[OLLAMA] = port
    return list(known.items())


def _port(host: str) -> int | None:
    """Return the port of an address on this machine, such as `127.0.0.1:11500`; None for other hosts."""
    try:
        place = urlsplit(host if "//" in host else f"//{host}")
        name, port = place.hostname or "", place.port
        is_here = name == "localhost" or ipaddress.ip_address(name).is_loopback or name == "0.0.0.0"
    except ValueError:
        return None
    return port if is_here else None


def find(asked: Iterable[tuple[str, int]], timeout: float = TIMEOUT) -> list[LocalServer]:
    """Ask all ports of the loopback interface at once; return the servers that list models within `timeout` seconds.

    A server that hangs or sends bytes without end is left behind on its daemon thread, which ends by its own deadline.
    """
    replies: Queue[tuple[int, LocalServer | None]] = Queue()
    number = -1
    for number, (name, port) in enumerate(asked):
        threading.Thread(
            target=_ask, args=(number, name, port, timeout, replies), name=f"roost-look-{port}", daemon=True
        ).start()
    until, found = monotonic() + timeout, dict[int, LocalServer]()
    for _ in range(number + 1):
        try:
            place, server = replies.get(timeout=max(0.0, until - monotonic()))
        except Empty:
            break
        if server is not None:
            found[place] = server
    return [found[place] for place in sorted(found)]


def _ask(number: int, name: str, port: int, timeout: float, replies: Queue[tuple[int, LocalServer | None]]) -> None:
    url = f"http://127.0.0.1:{port}/v1"
    try:
        models = names_in(get_json(f"{url}/models", {}, seconds=timeout, is_local=True))
    except (NoReply, ReplyRefused):
        models = ()
    replies.put((number, LocalServer(name, url, models) if models else None))


def names_in(listed: object) -> tuple[str, ...]:
    """Return the names in a list of models; drop what is no printable name of one line."""
    data = listed.get("data") if isinstance(listed, dict) else None
    ids = [one.get("id") for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    names = [name for name in ids if isinstance(name, str) and _is_name(name)]
    return tuple(dict.fromkeys(names))[:MOST_MODELS]


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()
