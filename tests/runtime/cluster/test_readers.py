"""T5 in a cluster: readers on every node see the same messages, with the same cursors."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from roost import NotFound
from roost.core.talks.messages import Message, TalkLog
from roost.ports import Tx
from roost.runtime.handlers.talks import remote
from roost.runtime.talks import live_talk, live_talks
from roost.runtime.talks.stream import TalkStream
from roost.service import AgentService
from roost.stores.postgres_connection import PostgresConnection
from roost.stores.sql.talks import messages, talks
from tests.conftest import eventually, everything, settled
from tests.runtime.cluster.brains import echo, endless, failing, words
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres


def _answered(node: AgentService, talk: str, text: str) -> None:
    """Wait until a message, which another node may have been given, is answered on this node."""
    eventually(
        lambda: text in (last := everything(node, "ann", talk)[-1]).content.split("|") and last.sender == "agent"
    )
    settled(node, "ann", talk)


def _assembled(started: list[AgentService], talk: str, rng: random.Random) -> str:
    """Read an answer piece by piece, on another node after every one to five pieces; return its text."""
    stream, text, cursor = TalkStream(TalkLog(talk, started[0].roost.context.store.generation), None), "", None
    while True:
        node = rng.choice(started)
        page = node.get_messages("ann", talk, after=cursor)
        for _ in range(rng.randint(1, 5)):
            for change in stream.of(page):
                if change.message.sender == "agent":
                    text = change.text if change.reset else text + change.text
            cursor = page.cursor
            page = node.get_messages("ann", talk, after=cursor)
        if not page.running and not page.messages and not page.more_after:
            return text


@pytest.mark.parametrize("seed", range(3))
def test_a_reader_that_changes_the_node_sees_each_piece_once(nodes: Nodes, seed: int) -> None:
    started = nodes.start({"words": words}, 3)
    talk = started[0].create_talk_session("ann", profile="words")
    started[1].add_message("ann", talk, "go")
    text = _assembled(started, talk, random.Random(seed))
    for node in started:
        assert everything(node, "ann", talk)[-1].content == text
    assert text == "".join(f"w{number} " for number in range(120))


def test_a_reader_that_changes_to_a_node_that_is_cut_off_sees_no_piece_twice(nodes: Nodes) -> None:
    started = nodes.start({"words": words}, 2)
    talk = started[0].create_talk_session("ann", profile="words")
    started[0].add_message("ann", talk, "go")
    eventually(lambda: len(started[0].get_messages("ann", talk).messages[-1].content) > 20)
    nodes.network.cut.add(nodes.id_of(started[1]))
    text = _assembled(started, talk, random.Random(7))
    assert text == everything(started[0], "ann", talk)[-1].content


def test_a_stream_continues_on_another_node_from_its_cursor(nodes: Nodes) -> None:
    first, second = nodes.start({"words": words}, 2)
    talk = first.create_talk_session("ann", profile="words")
    first.add_message("ann", talk, "go")
    text, cursor = "", None
    for change in first.stream_messages("ann", talk):
        if change.message.sender == "agent":
            text, cursor = text + change.text, change.cursor
        if len(text) > 100:
            break
    rest = list(second.stream_messages("ann", talk, after=cursor))
    assert not any(change.reset for change in rest)
    assert text + "".join(change.text for change in rest) == everything(first, "ann", talk)[-1].content


@pytest.mark.parametrize("read_only", [True, False])
def test_a_talk_that_changes_while_it_is_loaded_is_loaded_as_it_was_at_one_moment(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, read_only: bool
) -> None:
    [node] = nodes.start({"echo": echo})
    talk = node.create_talk_session("ann", profile="echo")
    newest = messages.newest

    def late(tx: Tx, talk_id: str, limit: int) -> list[tuple[Message, int]]:
        monkeypatch.undo()
        node.add_message("ann", talk, "hello")
        settled(node, "ann", talk)
        return newest(tx, talk_id, limit)

    monkeypatch.setattr(talks, "newest", late)
    other = PostgresConnection(nodes.url, read_only=read_only, node="another node")
    other.begin()
    loaded = talks.snapshot(other, "ann", talk, 10)
    other.close()
    assert [message.status for message, _ in loaded.messages] == ["complete", "complete"]
    assert loaded.revision == max(revision for _, revision in loaded.messages)


def test_pages_of_older_messages_are_equal_on_every_node(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 2)
    talk = started[0].create_talk_session("ann", profile="echo", busy="queue")
    for number in range(12):
        started[number % 2].add_message("ann", talk, f"m{number}")
    _answered(started[0], talk, "m11")
    ways: list[Callable[[AgentService], object]] = [
        lambda node: node.get_messages("ann", talk, limit=5),
        lambda node: node.get_messages("ann", talk, before=9, limit=4),
        lambda node: node.get_messages("ann", talk, before=1),
        lambda node: node.get_messages("ann", talk, after=node.get_messages("ann", talk, before=5, limit=3).cursor),
    ]
    # A notice that arrives late lets the talk look for messages once more, which counts as a revision.
    eventually(lambda: all(read(started[0]) == read(started[1]) for read in ways))


def test_a_talk_longer_than_what_is_kept_in_ram_is_read_on_another_node(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_talk, "KEPT", 8)
    monkeypatch.setattr(live_talk, "MOST", 16)
    for module in (live_talks, remote):
        monkeypatch.setattr(module, "TAIL", 8)
    first, second = nodes.start({"echo": echo}, 2)
    talk = first.create_talk_session("ann", profile="echo", busy="queue")
    cursor = second.get_messages("ann", talk).cursor
    for number in range(24):
        (first, second)[number % 2].add_message("ann", talk, f"m{number}")
    _answered(first, talk, "m23")
    found = everything(first, "ann", talk)
    assert [m.seq for m in found] == list(range(1, len(found) + 1))
    assert everything(second, "ann", talk) == found
    assert second.get_messages("ann", talk, after=cursor).messages == found
    assert first.get_messages("ann", talk, after=cursor).messages == found


def test_another_nodes_reader_sees_how_an_answer_ended(nodes: Nodes) -> None:
    first, second = nodes.start({"endless": endless, "failing": failing}, 2)
    talk = first.create_talk_session("ann", profile="endless")
    first.add_message("ann", talk, "go")
    eventually(lambda: len(second.get_messages("ann", talk).messages) == 2)
    page = second.get_messages("ann", talk)
    first.stop("ann", talk, wait=5)
    [ended] = second.get_messages("ann", talk, after=page.cursor).messages
    assert str(ended.status) == "interrupted"
    failed = first.create_talk_session("ann", profile="failing")
    first.add_message("ann", failed, "go")
    assert [str(m.status) for m in settled(second, "ann", failed)] == ["complete", "failed"]
    assert everything(second, "ann", failed) == everything(first, "ann", failed)


def test_a_sender_reads_its_message_where_it_was_sent_though_all_notices_of_it_were_lost(nodes: Nodes) -> None:
    first, second = nodes.start({"echo": echo}, 2)
    talk = first.create_talk_session("ann", profile="echo")
    carry = nodes.network.carry
    nodes.network.carry = lambda receive, message: None
    second.add_message("ann", talk, "hello")
    nodes.network.carry = carry
    page = second.get_messages("ann", talk)
    assert page.messages[0].content == "hello"
    assert page.running or len(page.messages) == 2
    assert settled(second, "ann", talk)[-1].content == "hello"


def test_another_users_talk_does_not_exist_on_any_node(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 2)
    talk = started[0].create_talk_session("ann", profile="echo")
    started[0].add_message("ann", talk, "hello")
    settled(started[1], "ann", talk)
    for node in started:
        for call in (
            lambda node=node: node.get_messages("bob", talk),
            lambda node=node: node.add_message("bob", talk, "hello"),
            lambda node=node: node.stop("bob", talk),
            lambda node=node: list(node.stream_messages("bob", talk)),
            lambda node=node: node.delete("bob", talk),
            lambda node=node: node.get_session("bob", talk),
        ):
            with pytest.raises(NotFound):
                call()


def test_a_talk_that_another_node_deletes_is_gone_everywhere(nodes: Nodes) -> None:
    first, second = nodes.start({"endless": endless}, 2)
    talk = first.create_talk_session("ann", profile="endless")
    first.add_message("ann", talk, "go")
    eventually(lambda: len(second.get_messages("ann", talk).messages) == 2)
    second.delete("ann", talk)
    eventually(lambda: first.roost.placement.run_of(talk) is None)
    for node in (first, second):
        with pytest.raises(NotFound):
            node.get_messages("ann", talk)


def test_a_talk_that_another_node_configures_is_answered_with_the_new_profile(nodes: Nodes) -> None:
    first, second = nodes.start({"echo": echo, "words": words}, 2)
    talk = first.create_talk_session("ann", profile="words")
    second.configure("ann", talk, profile="echo", title="new")
    assert first.get_session("ann", talk).title == "new"
    second.add_message("ann", talk, "hello")
    assert settled(first, "ann", talk)[-1].content == "hello"
    second.rename("ann", talk, "newer")
    assert [one.title for one in first.list_sessions("ann")] == ["newer"]
