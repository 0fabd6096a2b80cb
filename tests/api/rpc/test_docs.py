"""The requests in the docs do what the docs say."""

from __future__ import annotations

import json
import re

from roost.api.endpoints import endpoints
from roost.api.rpc import agent_control
from roost.api.rpc.methods import of_endpoints
from roost.core.limits.limits import Limits
from tests.api.rpc.connection import Client, opened
from tests.api.serving import Served
from tests.servers import ROOT

PAGE = (ROOT / "docs/reference/json-rpc.md").read_text()
REQUESTS = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]


def test_every_request_of_the_page_is_answered(served: Served) -> None:
    with opened(served) as socket:
        client = Client(socket)
        for request in REQUESTS:
            socket.send(json.dumps(request).replace('"echo"', '"parrot"'))
            found = client.until(lambda one: "id" in one)
            assert found["id"] == request["id"]
            assert "result" in found, found
    assert len(REQUESTS) >= 7


def test_the_parameters_of_existing_clients_are_documented(served: Served) -> None:
    known = of_endpoints(endpoints(served.service.asynchronous, Limits()))
    for name, method in agent_control.methods(served.service.asynchronous, known).items():
        [row] = [line for line in PAGE.splitlines() if f"`{name}`" in line and line.startswith("| ")]
        shown = set(re.findall(r"`(\w+)`", row.split("|")[2]))
        assert shown == {str(one.alias) for one in method.params.model_fields.values()}, name
