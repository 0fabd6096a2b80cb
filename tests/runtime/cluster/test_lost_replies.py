"""The backend of a node is lost between a commit and its reply: the write is there once, and is followed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from roost import Turn, Unavailable
from roost.service import AgentService
from tests.conftest import settled
from tests.faults.pg_proxy import PostgresProxy, proxied
from tests.runtime.cluster.brains import echo
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres
done: Counter[str] = Counter()


async def mailing(turn: Turn) -> AsyncIterator[str]:
    done[turn.text] += 1
    await turn.mail("user:ann", turn.text, "sent with the end of the turn")
    yield f"settled {turn.text}"


@dataclass
class Pair:
    """A node, and one that reaches the database through a proxy. Only the second one runs agents."""

    plain: AgentService
    proxied: AgentService
    proxy: PostgresProxy


@pytest.fixture
def pair(nodes: Nodes) -> Iterator[Pair]:
    done.clear()
    [plain] = nodes.start({"echo": echo})
    with proxied(nodes.url) as proxy:
        nodes.url = proxy.url
        [other] = nodes.start({"echo": echo, "mailing": mailing})
        yield Pair(plain, other, proxy)
        other.close()


def test_a_message_to_a_talk_of_another_node_is_there_once_and_answered(pair: Pair) -> None:
    talk = pair.plain.create_talk_session("ann", profile="echo")
    pair.proxy.lose_reply(b"precious words")
    with pytest.raises(Unavailable):
        pair.proxied.add_message("ann", talk, "precious words", key="k")
    assert pair.proxy.lost == 1
    assert pair.proxied.add_message("ann", talk, "precious words", key="k").seq == 1
    assert [m.content for m in settled(pair.plain, "ann", talk)] == ["precious words", "precious words"]


@pytest.mark.parametrize("mark", [b"SET epoch = epoch + 1, node", b"settled work"], ids=["claim", "settle"])
def test_a_claim_and_the_end_of_a_turn_are_written_once(pair: Pair, mark: bytes) -> None:
    pair.proxied.agents.create("ann", "d", profile="mailing")
    pair.proxy.lose_reply(mark)
    task = pair.plain.tasks.send("ann", "d", "work")
    ended = pair.plain.tasks.wait("ann", task, timeout=20)
    assert pair.proxy.lost == 1
    assert (ended.result, ended.attempts) == ("settled work", 1)
    assert [mail.subject for mail in pair.plain.mail.inbox("ann")] == ["work"]
    assert done == {"work": 1}
