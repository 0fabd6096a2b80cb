"""A9: whatever is sent, read, answered and archived, in whatever order, the counts are right."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from roost import AsyncAgentService
from roost.testing import Simulation
from tests.runtime.conftest import QUICK
from tests.runtime.handlers.mailing import BRAINS


@dataclass(slots=True)
class Known:
    """Mail as the model knows it."""

    mail_id: str
    sender: str
    recipient: str
    thread: str
    status: str = "unread"


OWNERS = {"user:ann": "ann", "agent:ann/a": "ann", "agent:bob/s": "bob", "user:bob": "bob"}
WRITES = [
    ("user:ann", "agent:ann/a"),
    ("agent:ann/a", "user:ann"),
    ("user:ann", "agent:bob/s"),
    ("agent:bob/s", "user:bob"),
    ("agent:ann/a", "agent:bob/s"),
    ("user:bob", "user:bob"),
]
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "read", "peek", "reply", "archive"]),
        st.integers(0, 100),
        st.sampled_from(["low", "normal", "high", "urgent"]),
    ),
    max_size=25,
)


class Model:
    """Does the same to the service and to a list; they must agree."""

    def __init__(self, service: AsyncAgentService) -> None:
        self.mail = service.mail
        self.all: list[Known] = []

    async def act(self, act: str, number: int, priority: str) -> None:
        if act == "send" or not self.all:
            sender, to = WRITES[number % len(WRITES)]
            mail_id = await self.mail.send(OWNERS[sender], to, "hello", "words", sender=sender, priority=priority)
            self.all.append(Known(mail_id, sender, to, mail_id))
            return
        one = self.all[number % len(self.all)]
        owner = OWNERS[one.recipient]
        if act == "read":
            one.status = "read" if one.status == "unread" else one.status
            assert (await self.mail.read(owner, one.mail_id)).status == one.status
        elif act == "peek":
            await self.mail.get(OWNERS[one.sender], one.mail_id)
        elif act == "archive":
            one.status = "archived"
            await self.mail.archive(owner, one.mail_id)
        else:
            mail_id = await self.mail.reply(owner, one.mail_id, "words", priority=priority)
            one.status = one.status if one.status == "archived" else "replied"
            self.all.append(Known(mail_id, one.recipient, one.sender, one.thread))

    async def expect_agreement(self) -> None:
        for box, owner in OWNERS.items():
            mine = [one for one in self.all if one.recipient == box]
            assert await self.mail.unread_count(owner, box) == sum(one.status == "unread" for one in mine)
            shown = {(m.mail_id, str(m.status)) for m in await self.mail.inbox(owner, box)}
            assert shown == {(one.mail_id, one.status) for one in mine if one.status != "archived"}
            whole = await self.mail.inbox(owner, box, include_archived=True)
            assert {m.mail_id for m in whole} == {one.mail_id for one in mine}
        for thread_id in {one.thread for one in self.all}:
            whole_thread = [one for one in self.all if one.thread == thread_id]
            for end in {OWNERS[whole_thread[0].sender], OWNERS[whole_thread[0].recipient]}:
                seen = [m.mail_id for m in await self.mail.thread(end, thread_id)]
                assert seen == [one.mail_id for one in whole_thread]


@settings(max_examples=30)
@given(acts=ACTS)
def test_whatever_is_sent_read_answered_and_archived_the_counts_are_right(acts: list[tuple[str, int, str]]) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "a", profile="silent", start=False)
        await service.agents.create("bob", "s", profile="silent", start=False, shared=True)
        model = Model(service)
        for act in acts:
            await model.act(*act)
        await model.expect_agreement()

    with tempfile.TemporaryDirectory() as folder:
        simulation = Simulation(Path(folder), seed=1)
        simulation.run(story(simulation.start(BRAINS, QUICK)))
        simulation.crash()
