"""An answer that is followed over `/rpc` while the server is killed and started again is assembled as it is stored."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.api.rpc.connection import Client
from tests.api.rpc.test_subscriptions import Text
from tests.cli.running import Up, up

pytestmark = pytest.mark.journey

SETTINGS = '[profiles.slow]\nbrain = "slow_brain:slow"\n'
BRAIN = """
import asyncio, pathlib

async def slow(turn):
    runs = pathlib.Path("runs.txt")
    with runs.open("a") as file:
        file.write("run\\n")
    for number in range(100):
        yield f"w{number} "
        await asyncio.sleep(0.01)
        if number == 30 and len(runs.read_text().splitlines()) <= KILLS:
            await asyncio.sleep(1000)  # until it is killed
"""
KILLS = 3


def opened(running: Up) -> Connection:
    token = json.loads(running.lock.read_text())["token"]
    headers = {"Authorization": f"Bearer {token}"}
    return connect(f"ws://localhost:{running.port}/rpc", additional_headers=headers, proxy=None)


def test_an_answer_is_followed_over_kills_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text(SETTINGS)
    (tmp_path / "slow_brain.py").write_text(BRAIN.replace("KILLS", str(KILLS)))
    talk, text = "", Text()
    stored: list[dict[str, Any]] = []
    for number in range(KILLS + 1):
        with up(tmp_path, command="serve") as running, opened(running) as socket:
            client = Client(socket)
            if not talk:
                talk = client.call("talk.createTalkSession", profile="slow")["talkSessionId"]
                client.call("talk.addMessage", talkSessionId=talk, content="go", key="once")
            client.call("subscribe", topic="talk", talkSessionId=talk, after=text.cursor)
            last, newest = "w99 " if number == KILLS else "w30 ", 0
            while not text.messages.get(newest, "").endswith(last) or (number == KILLS and newest not in text.done):
                text.add(client.event())
                newest = max(text.messages)
            if number < KILLS:
                assert running.end(signal.SIGKILL) == -signal.SIGKILL
            else:
                stored = client.call("talk.getMessages", talkSessionId=talk)["messages"]
    assert [text.messages[message["seq"]] for message in stored] == [message["content"] for message in stored]
    assert stored[-1]["content"] == "".join(f"w{number} " for number in range(100))
    assert [message["status"] for message in stored] == ["complete", *["interrupted"] * KILLS, "complete"]
