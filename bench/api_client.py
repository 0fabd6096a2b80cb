"""A client of the HTTP API for measurements, with one connection."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from roost.api.auth import identity


class ApiClient:
    """A client with one HTTP connection that is kept, signed in as a visitor."""

    def __init__(self, url: str, data: Path) -> None:
        mine = identity(data)
        self.headers = {"Cookie": f"{mine.cookie_name}={mine.cookie('ann')}", "Origin": url}
        self.socket = url.replace("http", "ws") + "/rpc"
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def get(self, path: str) -> Any:
        return self._answer("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._answer("POST", path, json.dumps(body))

    def _answer(self, verb: str, path: str, body: str | None) -> Any:
        self._connection.request(verb, path, body, self.headers | {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        text = response.read()
        assert response.status < 300, text
        return json.loads(text)
