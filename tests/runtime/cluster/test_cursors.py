"""T5 in a cluster: a cursor of one node is valid on all others, whatever they know yet."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from roost import Invalid, Turn
from roost.stores.sql.talks import answers
from tests.conftest import eventually, settled
from tests.runtime.cluster.brains import echo, silent, until
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres


def test_a_cursor_of_another_talk_is_refused_on_every_node(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 2)
    talk, other = (started[0].create_talk_session("ann", profile="echo") for _ in range(2))
    for one in (talk, other):
        started[0].add_message("ann", one, "hello")
        settled(started[0], "ann", one)
    cursor = started[0].get_messages("ann", other).cursor
    for node in started:
        with pytest.raises(Invalid):
            node.get_messages("ann", talk, after=cursor)
        with pytest.raises(Invalid):
            node.get_messages("ann", talk, after="nonsense")


def test_a_reader_with_a_newer_cursor_catches_up_on_the_node_of_the_talk(nodes: Nodes) -> None:
    first, second = nodes.start({"silent": silent}, 2)
    talk = first.create_talk_session("ann", profile="silent", busy="queue")
    first.add_message("ann", talk, "one")
    nodes.network.cut.add(nodes.id_of(second))
    second.add_message("ann", talk, "two")
    page = second.get_messages("ann", talk)
    assert [m.content for m in page.messages] == ["one", "two"]
    assert first.get_messages("ann", talk, after=page.cursor).messages == ()
    assert [m.content for m in first.get_messages("ann", talk).messages] == ["one", "two"]
    first.stop("ann", talk, wait=5)


def test_a_reader_that_has_seen_more_than_was_saved_gets_no_shorter_text(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "checkpoint", lambda *_: True)
    done = threading.Event()

    async def growing(turn: Turn) -> AsyncIterator[str]:
        yield "first "
        await asyncio.sleep(0.3)
        yield "second"
        await until(done)

    first, second = nodes.start({"growing": growing}, 2)
    talk = first.create_talk_session("ann", profile="growing")
    first.add_message("ann", talk, "go")
    eventually(lambda: first.get_messages("ann", talk).messages[-1].content == "first second")
    cursor = first.get_messages("ann", talk).cursor
    nodes.network.cut.add(nodes.id_of(second))
    assert [m.content for m in second.get_messages("ann", talk).messages] == ["go", "first "]
    shown = second.get_messages("ann", talk, after=cursor)
    done.set()
    assert (shown.messages, shown.running) == ((), True)
