"""`roost mcp` as a host starts it: a real process, and a real client on its standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.cli.running import COMMAND, PATIENCE, environment, roost, up
from tests.mcp_server.connection import ERAS, called, refused, run

SETTINGS = '[profiles.parrot]\nbrain = "echo"\n'
"""A profile that answers at once; the guide writes a word every 30 ms."""


@asynccontextmanager
async def started(folder: Path, era: str = "auto", errors: TextIO | None = None) -> AsyncIterator[Client]:
    command, *arguments = COMMAND
    process = StdioServerParameters(
        command=command,
        args=[*arguments, "mcp"],
        env=environment(folder) | {"ROOST_DATA": str(folder / "data")},
        cwd=folder,
    )
    with open(os.devnull, "w") as nothing:  # noqa: ASYNC230
        async with Client(stdio_client(process, errors or nothing), mode=era) as client:
            yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "roost.toml").write_text(SETTINGS)
    return tmp_path


def test_a_client_talks_with_the_running_server(folder: Path) -> None:
    async def test(era: str) -> None:
        async with started(folder, era) as client:
            made = await called(client, "list_agents")
            assert [one["agent_id"] for one in made["agents"]] == ["helper"]
            answer = await called(client, "ask_helper", message="How do I create an agent?")
            assert (answer["status"], answer["answer"]) == ("complete", "How do I create an agent?")

    with up(folder, command="serve"):
        roost(folder, "agents", "create", "helper", "--profile", "parrot")
        for era in ERAS:
            run(test(era))
        assert roost(folder, "talks", "ls").stdout.count("How do I create an agent?") == len(ERAS)


def test_without_a_server_the_store_is_open_only_while_it_is_used(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            first = await called(client, "talk", message="How do I create an agent?", profile="parrot")
            assert first["status"] == "complete"
            # Another command gets the store, although the client stays connected.
            made = await asyncio.to_thread(roost, folder, "agents", "create", "d", "--profile", "guide")
            assert made.returncode == 0, made.stderr
            assert "ask_d" in {tool.name for tool in (await client.list_tools()).tools}
            read = await called(client, "read_talk", talk_id=first["talk_id"])
            assert len(read["messages"]) == 2

    run(test())


def test_a_client_survives_a_restart_of_the_server(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            with up(folder, command="serve") as first:
                talk = (await called(client, "talk", message="hello", profile="parrot"))["talk_id"]
                await asyncio.to_thread(first.end, signal.SIGKILL)
            with up(folder, command="serve"):
                again = await called(client, "talk", message="hello again", talk_id=talk)
                assert again["status"] == "complete"
            local = await called(client, "read_talk", talk_id=talk)  # the server was killed again
            assert len(local["messages"]) == 4

    run(test())


def test_errors_are_sentences_there_too(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            assert "there is no such talk" in await refused(client, "read_talk", talk_id="nope")
            assert "message: must be given" in await refused(client, "talk")

    run(test())


def test_a_cancelled_call_stops_waiting_and_the_next_one_is_answered(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            made = await asyncio.to_thread(roost, folder, "agents", "create", "off", "--profile", "guide", "--stopped")
            assert made.returncode == 0, made.stderr
            task = (await called(client, "give_task", agent="off", prompt="x"))["task_id"]
            waiting = asyncio.create_task(client.call_tool("get_task", {"task_id": task, "wait": 300}))
            assert (await called(client, "get_task", task_id=task))["status"] == "queued"
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            # The store is given back, which it is not while a call waits.
            freed = await asyncio.to_thread(roost, folder, "tasks", "ls")
            assert freed.returncode == 0, freed.stderr

    run(test())


def test_a_call_that_is_cancelled_while_the_store_opens_does_not_keep_it(folder: Path) -> None:
    async def test() -> None:
        async with started(folder) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):  # opening a store takes ten times as long
                    await client.call_tool("list_agents", {})
            freed = await asyncio.to_thread(roost, folder, "agents", "ls")
            assert freed.returncode == 0, freed.stderr
            assert (await called(client, "list_agents"))["agents"] == []

    run(test())


def test_standard_output_has_only_messages_and_the_end_of_input_ends_it(folder: Path) -> None:
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _initialize()},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    with subprocess.Popen(
        [*COMMAND, "mcp"],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("this is no message\n" + "".join(json.dumps(one) + "\n" for one in asked))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [one["id"] for one in answers] == [1, 2]
        rest, errors = process.communicate(timeout=PATIENCE)
    assert (rest, errors, process.returncode) == ("", "", 0)


def test_without_the_package_a_sentence_names_it(folder: Path) -> None:
    program = "import sys; sys.modules['mcp_types'] = None; from roost.cli.main import app; app(['mcp'])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "roost: MCP needs the package 'mcp_types': pip install 'roost[mcp]'\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_although_its_input_is_open(folder: Path, number: int) -> None:
    with subprocess.Popen(
        [*COMMAND, "mcp"], cwd=folder, env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _initialize()}) + "\n"
        )
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number


def _initialize() -> dict[str, object]:
    return {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
