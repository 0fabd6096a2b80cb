"""The guide to MCP is true: its configurations work as they are, and its table has every tool and argument."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

import roost
from roost.mcp_server.arguments import AskArguments
from roost.mcp_server.tools import TOOLS
from tests.api.serving import Served
from tests.cli.running import COMMAND, environment
from tests.mcp_server.connection import called, connected, run
from tests.servers import ROOT, new_store

PAGE = (ROOT / "docs/guides/mcp.md").read_text()
COMMAND_LINE, HTTP = (
    json.loads(text)["mcpServers"]["roost"] for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
)


async def converse(client: Client) -> None:
    """Find an agent, ask it, continue the talk, and read all of it."""
    assert [one["agent_id"] for one in (await called(client, "list_agents"))["agents"]] == ["parrot"]
    first = await called(client, "ask_parrot", message="Hello")
    second = await called(client, "ask_parrot", message="And again", talk_id=first["talk_id"])
    assert second["talk_id"] == first["talk_id"]
    whole = await called(client, "read_talk", talk_id=first["talk_id"])
    said = [(one["sender"], one["text"].strip()) for one in whole["messages"]]
    assert said == [("user", "Hello"), ("agent", "Hello"), ("user", "And again"), ("agent", "And again")]


def test_the_configured_command_serves_a_client(tmp_path: Path) -> None:
    assert COMMAND_LINE["command"] == "roost"
    command, *arguments = COMMAND
    process = StdioServerParameters(
        command=command, args=[*arguments, *COMMAND_LINE["args"]], env=environment(tmp_path), cwd=tmp_path
    )

    (tmp_path / "data").mkdir()
    with roost.open(new_store(tmp_path / "data" / "roost.db")) as service:
        service.agents.create("ann", "parrot", profile="echo")

    async def test() -> None:
        async with Client(process) as client:
            await converse(client)

    run(test())


def test_the_configured_address_serves_a_client(served: Served) -> None:
    token = served.service.tokens.create("ann", "mcp").secret
    headers = {name: text.replace("TOKEN", token) for name, text in HTTP["headers"].items()}
    assert HTTP["url"].endswith("/mcp")

    async def test() -> None:
        async with connected(served, **headers) as client:
            await converse(client)

    served.service.agents.create("ann", "parrot", profile="echo")
    run(test())


def test_the_program_for_another_machine_holds_a_conversation(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    [sample] = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
    served.service.agents.create("ann", "parrot", profile="echo")
    token = served.service.tokens.create("ann", "mcp").secret
    exec(sample.replace("http://localhost:8501", served.url), {"token": token, "__name__": "sample"})
    assert capsys.readouterr().out.strip() == "And again"
    [talk] = served.service.list_sessions("ann")
    said = [message.content.strip() for message in served.service.get_messages("ann", talk.talk_session_id).messages]
    assert said == ["Hello", "Hello", "And again", "And again"]


def test_every_tool_and_every_argument_is_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (`.*`) \| ", PAGE, re.MULTILINE))
    known = {name: tool.takes for name, tool in TOOLS.items()} | {"ask_NAME": AskArguments}
    assert rows == {name: ", ".join(f"`{field}`" for field in takes.model_fields) for name, takes in known.items()}
