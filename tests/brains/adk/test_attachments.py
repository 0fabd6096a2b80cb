"""Files of messages for an agent of the ADK: parts now and in the history, and only once in the store."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

import roost
from roost.brains.adk import Adk
from roost.ports import Tx
from tests.brains.adk import models
from tests.conftest import Open, settled

PNG = b"\x89PNG\r\n\x1a\n some pixels"
IN_TURN = ["look", "## File: a.txt\n\nseeds", PNG, "[attached file, not shown: c (application/octet-stream, 2 bytes)]"]


class Seeing(models.Scripted):
    """Model that notes the parts of what people said."""

    parts: list[list[Any]]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = [part for content in llm_request.contents if content.role == "user" for part in content.parts or []]
        self.parts.append([part.inline_data.data if part.inline_data else part.text for part in said])
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="seen")]))


def stored(tx: Tx) -> str:
    return "".join(
        row[0] for row in tx.read("SELECT content FROM diary UNION ALL SELECT coalesce(result, '') FROM steps")
    )


@pytest.mark.parametrize("vision", [True, False])
def test_an_agent_is_shown_files_as_parts_now_and_later(service: Open, vision: bool) -> None:
    model = Seeing(parts=[])
    brain = Adk(LlmAgent(name="helper", model=model))
    one = service({"helper": brain})
    registry: Any = one.roost.context.brains
    registry._profiles["helper"] = roost.Profile("helper", "helper", vision=vision)
    talk = one.create_talk_session("ann", profile="helper")
    files = {"a.txt": b"seeds", "b.png": PNG, "c": b"\0\1"}
    ids = [one.add_attachment("ann", name, data).attachment_id for name, data in files.items()]
    one.add_message("ann", talk, "look", attachments=ids)
    assert settled(one, "ann", talk)[-1].content == "seen"
    one.add_message("ann", talk, "again")
    settled(one, "ann", talk)
    shown = (
        [*IN_TURN] if vision else [*IN_TURN[:2], "[attached file, not shown: b.png (image/png, 20 bytes)]", IN_TURN[3]]
    )
    assert model.parts == [shown, [*shown, "again"]]
    fork = one.fork("ann", talk, seq=2).talk_session_id
    one.delete("ann", talk)
    one.add_message("ann", fork, "and now")
    settled(one, "ann", fork)
    assert model.parts[-1] == [*shown, "and now"]
    assert "seeds" not in one.roost.context.store.read_now(stored)
