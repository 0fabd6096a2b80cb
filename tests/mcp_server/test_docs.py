"""The guide to MCP is true: its configurations work as they are, and its table has every tool and argument."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mcp import Client, StdioServerParameters

from roost.mcp_server.arguments import AskArguments
from roost.mcp_server.tools import TOOLS
from tests.api.serving import Served
from tests.cli.running import COMMAND, environment
from tests.mcp_server.connection import called, connected, run
from tests.servers import ROOT

PAGE = (ROOT / "docs/guides/mcp.md").read_text()
COMMAND_LINE, HTTP = (
    json.loads(text)["mcpServers"]["roost"] for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
)


def test_the_configured_command_serves_a_client(tmp_path: Path) -> None:
    assert COMMAND_LINE["command"] == "roost"
    command, *arguments = COMMAND
    process = StdioServerParameters(
        command=command, args=[*arguments, *COMMAND_LINE["args"]], env=environment(tmp_path), cwd=tmp_path
    )

    async def test() -> None:
        async with Client(process) as client:
            assert (await called(client, "list_agents"))["agents"] == []

    run(test())


def test_the_configured_address_serves_a_client(served: Served) -> None:
    token = served.service.tokens.create("ann", "mcp").secret
    headers = {name: text.replace("TOKEN", token) for name, text in HTTP["headers"].items()}
    assert HTTP["url"].endswith("/mcp")

    async def test() -> None:
        async with connected(served, **headers) as client:
            assert (await called(client, "list_agents"))["agents"] == []

    run(test())


def test_every_tool_and_every_argument_is_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (`.*`) \| ", PAGE, re.MULTILINE))
    known = {name: tool.takes for name, tool in TOOLS.items()} | {"ask_NAME": AskArguments}
    assert rows == {name: ", ".join(f"`{field}`" for field in takes.model_fields) for name, takes in known.items()}
