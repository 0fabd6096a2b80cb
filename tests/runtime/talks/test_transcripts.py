"""Export and import of talks: what is exported is imported, and nothing else changes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

import roost
from roost import AsyncAgentService, Chunk, Turn
from tests.runtime.conftest import QUICK, World, ended


async def echo(turn: Turn) -> AsyncIterator[str | Chunk]:
    yield Chunk("hm", channel="thinking")
    yield f"{len(turn.history)} before: {turn.text}"


def test_an_imported_talk_is_the_exported_one_and_continues(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", busy="queue", title="Birds", temperature=0.5)
        for text in ("hello 🐦", "# more\n```"):
            await service.add_message("ann", talk, text)
            await ended(service, talk)
        exported = await service.export_talk("ann", talk, format="json")
        copy = await service.import_talk("bob", exported)
        assert copy != talk
        assert await service.export_talk("bob", copy, format="json") == exported
        assert await service.export_talk("bob", copy) == await service.export_talk("ann", talk)
        assert [hit.seq for hit in (await service.search("bob", "hello")).hits] == [2, 1]
        await service.add_message("bob", copy, "go on")
        [*_, change] = [change async for change in service.stream_messages("bob", copy)]
        assert (change.message.seq, change.message.content) == (6, "4 before: go on")
        with pytest.raises(roost.NotFound):
            await service.export_talk("bob", talk)

    world({"echo": echo}, scenario)


def test_a_transcript_with_a_key_is_added_once_for_each_user(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", title="Birds")
        exported = await service.export_talk("ann", talk, format="json")
        copies = [await service.import_talk("bob", exported, key="k") for _ in range(2)]
        other = [await service.import_talk("bob", exported, key=key) for key in ("l", None)]
        assert copies[0] == copies[1]
        assert len({*copies, *other, await service.import_talk("ann", exported, key="k")}) == 4
        with pytest.raises(roost.Invalid, match="the key"):
            await service.import_talk("bob", exported, key="")

    world({"echo": echo}, scenario)


def test_an_invalid_transcript_changes_nothing(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", title="Birds")
        exported = json.loads(await service.export_talk("ann", talk, format="json"))
        for path, value in (("profile", "gone"), ("agent", "agent:gone"), ("options", {"temperature": 9})):
            with pytest.raises((roost.Invalid, roost.NotFound)):
                await service.import_talk("ann", json.dumps(exported | {"talk": exported["talk"] | {path: value}}))
        with pytest.raises(roost.LimitReached):
            await service.import_talk("ann", json.dumps(exported))
        with pytest.raises(roost.Invalid, match="use one of markdown, json"):
            await service.export_talk("ann", talk, format="pdf")
        with pytest.raises(roost.Invalid, match="not both"):
            await service.import_talk("ann", json.dumps(exported), profile="echo", agent="d")
        assert [one.talk_session_id for one in await service.list_sessions("ann")] == [talk]

    world({"echo": echo}, scenario, replace(QUICK, talks_per_user=1))


def test_an_imported_talk_can_continue_with_another_agent(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="echo")
        talk = await service.create_talk_session("ann", agent="d")
        exported = await service.export_talk("ann", talk, format="json")
        with pytest.raises(roost.NotFound):
            await service.import_talk("bob", exported)  # no agent of this name is bob's
        own, other = (
            await service.import_talk("ann", exported),
            await service.import_talk("bob", exported, profile="echo"),
        )
        assert (await service.get_session("ann", own)).agent == "agent:ann/d"
        assert (await service.get_session("bob", other)).profile == "echo"

    world({"echo": echo}, scenario)


def test_notes_and_errors_of_imported_answers_count_towards_the_quota(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        exported = await service.export_talk("ann", await service.create_talk_session("ann"), format="json")
        about = {"sender": "agent", "text": "", "status": "failed", "created": "2030-01-01T00:00:00+00:00"}
        hidden = about | {"error": "x" * 50_000, "notes": [{"channel": "thinking", "text": "x" * 250_000}]}
        large = json.dumps(json.loads(exported) | {"messages": [hidden]})
        with pytest.raises(roost.LimitReached, match="stored_mib_per_user"):
            for _ in range(5):
                await service.import_talk("ann", large)
        assert len(await service.list_sessions("ann")) < 5

    world({"echo": echo}, scenario, replace(QUICK, stored_mib_per_user=1))


def test_a_transcript_in_uploads_is_added_whole_and_its_uploads_are_deleted(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", title="grüß 🐦")
        text = await service.export_talk("ann", talk, format="json")
        data = text.encode()
        pieces = [data[first : first + 50] for first in range(0, len(data), 50)]  # also inside of a character
        ids = [(await service.add_attachment("ann", "part", piece)).attachment_id for piece in pieces]
        with pytest.raises(roost.NotFound):
            await service.import_talk("bob", attachments=ids)
        for wrong in (ids[:-1], ids[0], [3], ids * 1_000):
            with pytest.raises(roost.Invalid):
                await service.import_talk("ann", attachments=wrong)  # type: ignore[arg-type]
        with pytest.raises(roost.Invalid, match="leave one out"):
            await service.import_talk("ann", text, attachments=ids)
        assert len(await service.list_sessions("ann")) == 1
        added = await service.import_talk("ann", attachments=ids, key="k")
        assert (await service.get_session("ann", added)).title == "grüß 🐦"
        assert await service.import_talk("ann", attachments=ids, key="k") == added  # the reply was lost
        for one in ids:
            with pytest.raises(roost.NotFound):
                await service.get_attachment("ann", one)

    world({"echo": echo}, story)
