"""Clients of every kind follow an answer while the server is killed and started again: all have the stored text."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

import roost
from tests.cli.running import Up, up
from tests.client import nodes
from tests.client.proxy import Proxy, failing
from tests.conftest import eventually
from tests.journeys.test_rpc_killed import BRAIN, SETTINGS

pytestmark = pytest.mark.journey

KILLS = 1
PATIENCE = 100
Texts = dict[int, str]
STORY = """
const texts = {};
for await (const { message, text, reset } of roost.talks.streamMessages({ talkSessionId: given[0] })) {
  texts[message.seq] = reset ? text : (texts[message.seq] ?? "") + text;
}
tell(texts);
"""


def add(texts: Texts, change: roost.Change) -> None:
    seq = change.message.seq
    texts[seq] = change.text if change.reset else texts.get(seq, "") + change.text
    assert texts[seq] == change.message.content


def plain(url: str, token: str, talk: str) -> Texts:
    texts: Texts = {}
    with roost.connect(url, token, patience=PATIENCE) as service:
        for change in service.stream_messages("ann", talk):
            add(texts, change)
    return texts


def coroutines(url: str, token: str, talk: str) -> Texts:
    async def main() -> Texts:
        texts: Texts = {}
        async with roost.aconnect(url, token, patience=PATIENCE) as service:
            async for change in service.stream_messages("ann", talk):
                add(texts, change)
        return texts

    return asyncio.run(main())


def javascript(url: str, token: str, talk: str) -> Texts:
    [texts] = nodes.run(STORY, url, token, talk, patience=PATIENCE)
    return {int(seq): text for seq, text in texts.items()}


CLIENTS: list[Callable[[str, str, str], Texts]] = [plain, coroutines, javascript]


def started(stack: ExitStack, folder: Path, proxy: Proxy) -> Up:
    running = stack.enter_context(up(folder, command="serve"))
    proxy.server = f"http://localhost:{running.port}"
    return running


def begun(running: Up, url: str) -> tuple[str, str]:
    """Return the token of ann and a talk with a message."""
    local = json.loads(running.lock.read_text())["token"]
    with roost.connect(url, local) as service:
        talk = service.create_talk_session("ann", profile="slow")
        service.add_message("ann", talk, "go")
        return service.tokens.create("ann", "test").secret, talk


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 15))])
def test_clients_follow_an_answer_over_kills_of_the_server(tmp_path: Path, seed: int) -> None:
    """The seed chooses the word at which the server is killed, or stopped and started again."""
    chance = Random(seed)
    at = chance.randrange(1, 99)
    end = signal.SIGTERM if seed % 3 == 2 else signal.SIGKILL
    (tmp_path / "roost.toml").write_text(SETTINGS)
    brain = BRAIN.replace("KILLS", str(KILLS)).replace("number == 30", f"number == {at}")
    (tmp_path / "slow_brain.py").write_text(brain)
    with failing("http://localhost:1") as proxy, ExitStack() as stack, ThreadPoolExecutor(len(CLIENTS)) as pool:
        running = started(stack, tmp_path, proxy)
        token, talk = begun(running, proxy.url)
        followed = [pool.submit(client, proxy.url, token, talk) for client in CLIENTS]
        with roost.connect(proxy.url, token, patience=PATIENCE) as service:
            for number in range(1, KILLS + 1):
                eventually(lambda number=number: blocked(service, talk, number, f"w{at} "))  # type: ignore[misc]
                assert running.end(end) in (0, -end)
                running = started(stack, tmp_path, proxy)
            texts = [one.result(PATIENCE) for one in followed]
            stored = service.get_messages("ann", talk).messages
    assert [message.status for message in stored] == ["complete", *["interrupted"] * KILLS, "complete"]
    assert stored[-1].content == "".join(f"w{number} " for number in range(100))
    assert texts == [{message.seq: message.content for message in stored}] * len(CLIENTS)


def blocked(service: roost.RemoteService, talk: str, number: int, last: str) -> bool:
    """Return whether this run has written all that it writes before it waits to be killed."""
    messages = service.get_messages("ann", talk).messages
    return len(messages) == number + 1 and messages[-1].content.endswith(last)
