"""Files in messages: uploaded, sent, read, branched, exported and deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

import roost
from roost import AsyncAgentService, PlainTurn, Turn
from roost.core.talks.attachments import PIECE
from tests.runtime.conftest import QUICK, World, ended

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * (5 * PIECE // 256)


async def echo(turn: Turn) -> AsyncIterator[str]:
    yield turn.text or "nothing said"


def test_a_file_is_sent_read_and_deleted_with_its_talk(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        file = await service.add_attachment("ann", "/home/ann/bird.png", PNG)
        assert (file.name, file.media_type, file.size, len(file.sha256)) == ("bird.png", "image/png", len(PNG), 64)
        talk = await service.create_talk_session("ann")
        sent = await service.add_message("ann", talk, "", attachments=[file.attachment_id], key="k")
        assert sent == await service.add_message("ann", talk, "", attachments=[file.attachment_id], key="k")
        await ended(service, talk)
        page = await service.get_messages("ann", talk)
        assert [(m.content, m.attachments) for m in page.messages] == [("", (file,)), ("nothing said", ())]
        found = await service.get_attachment("ann", file.attachment_id)
        assert (found.attachment, found.data) == (file, PNG)
        for user, name in (("bob", file.attachment_id), ("ann", "attachment_x")):
            with pytest.raises(roost.NotFound):
                await service.get_attachment(user, name)
        await service.delete("ann", talk)
        with pytest.raises(roost.NotFound):
            await service.get_attachment("ann", file.attachment_id)

    world({"echo": echo}, scenario)


def test_what_is_refused_changes_nothing_and_says_what_to_do(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        files = [(await service.add_attachment("ann", "a.txt", b"x")).attachment_id for _ in range(3)]
        his = (await service.add_attachment("bob", "a.txt", b"x")).attachment_id
        talk = await service.create_talk_session("ann")
        for data, told in ((b"", "is empty"), (b"x" * 101, "attachment_bytes")):
            with pytest.raises(roost.Invalid, match=told):
                await service.add_attachment("ann", "a.txt", data)
        with pytest.raises(roost.Invalid, match="at most 2 files"):
            await service.add_message("ann", talk, "hi", attachments=files)
        with pytest.raises(roost.Invalid, match="must not be empty"):
            await service.add_message("ann", talk, "", attachments=[])
        for wrong in ("attachment_x", his):
            with pytest.raises(roost.NotFound, match="upload it again"):
                await service.add_message("ann", talk, "hi", attachments=[files[0], wrong])
        with pytest.raises(roost.LimitReached, match="stored_mib_per_user"):
            for _ in range(20):
                await service.add_attachment("carol", "a.txt", b"x" * 100)
        assert (await service.get_messages("ann", talk)).messages == ()
        await service.add_message("ann", talk, "hi", attachments=files[:2])
        with pytest.raises(roost.Conflict, match="another message"):
            await service.add_message("ann", talk, "hi", attachments=files[:1])

    limits = replace(QUICK, attachment_bytes=100, attachments_per_message=2, stored_mib_per_user=1000 / 1024 / 1024)
    world({"echo": echo}, scenario, limits)


def test_a_branch_keeps_the_files_of_a_talk_that_is_deleted_and_an_export_has_them(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        file = await service.add_attachment("ann", "[a]*.txt", b"seeds")
        talk = await service.create_talk_session("ann")
        await service.add_message("ann", talk, "", attachments=[file.attachment_id])
        await ended(service, talk)
        fork = (await service.fork("ann", talk)).talk_session_id
        edited = (await service.edit_message("ann", fork, 1, "better")).talk_session_id
        await ended(service, edited)
        exported = await service.export_talk("ann", talk, format="json")
        assert r"*attachment* \[a\]\*.txt (text/plain, 5 bytes)" in await service.export_talk("ann", talk)
        await service.delete("ann", talk)
        for kept in (fork, edited):
            assert (await service.get_messages("ann", kept)).messages[0].attachments == (file,)
        assert (await service.get_attachment("ann", file.attachment_id)).data == b"seeds"
        copy = await service.import_talk("bob", exported)
        assert await service.export_talk("bob", copy, format="json") == exported
        [own] = (await service.get_messages("bob", copy)).messages[0].attachments
        assert own.attachment_id != file.attachment_id
        assert (await service.get_attachment("bob", own.attachment_id)).data == b"seeds"

    world({"echo": echo}, scenario)


def test_a_brain_reads_the_files_of_its_messages_and_of_the_history(world: World) -> None:
    async def reader(turn: Turn) -> AsyncIterator[str]:
        [file] = turn.attachments
        content = await file.text() if file.is_text else len(await file.read())
        yield f"{file.name} {file.media_type} {file.size} {content};"
        for message in turn.history:
            for old in turn.attachments_of(message):
                yield f" before: {await old.text()}"
        if not file.is_text:
            with pytest.raises(roost.Invalid, match="use `read`"):
                await file.text()

    def plain(turn: PlainTurn) -> Iterator[str]:
        [file] = turn.attachments
        [same] = turn.attachments_of(turn.messages[0])
        yield f"{file.name} {file.size} {file.text()} {len(file.read())} {same.text()}"

    async def scenario(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="reader")
        for name, data in (("a.txt", b"seeds"), ("b.png", PNG)):
            file = await service.add_attachment("ann", name, data)
            await service.add_message("ann", talk, "", attachments=[file.attachment_id])
            await ended(service, talk)
        said = [m.content for m in (await service.get_messages("ann", talk)).messages if m.sender == "agent"]
        assert said == ["a.txt text/plain 5 seeds;", f"b.png image/png {len(PNG)} {len(PNG)}; before: seeds"]
        [*_, run] = await service.runs.list("ann", talk=talk)
        assert (await service.runs.replay("ann", run.run_id)).is_identical
        talk = await service.create_talk_session("ann", profile="plain")
        file = await service.add_attachment("ann", "c.txt", b"abc")
        await service.add_message("ann", talk, "", attachments=[file.attachment_id])
        await ended(service, talk)
        assert (await service.get_messages("ann", talk)).messages[-1].content == "c.txt 3 abc 3 abc"

    world({"reader": reader, "plain": plain}, scenario)
