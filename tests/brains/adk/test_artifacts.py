"""B2: artifacts of ADK agents are in the store, with their talk or for their user."""

from __future__ import annotations

from google.adk.tools.tool_context import ToolContext
from google.genai import types

import roost
from roost.brains.adk import Adk
from roost.hosts.pending import drive
from roost.stores.sql.brain_data import artifacts
from tests.brains.adk import models
from tests.conftest import Open, settled

PICTURE = bytes(range(256)) * 40


async def draw(tool_context: ToolContext, name: str) -> str:
    """Save a picture."""
    part = types.Part(inline_data=types.Blob(mime_type="image/png", data=PICTURE))
    return f"version {await tool_context.save_artifact(name, part, custom_metadata={'by': 'me'})}"


async def look(tool_context: ToolContext, name: str) -> str:
    """Tell what there is of a picture."""
    part = await tool_context.load_artifact(name)
    about = await tool_context.get_artifact_version(name)
    if part is None or part.inline_data is None or about is None:
        return f"nothing; there are {await tool_context.list_artifacts()}"
    is_same = part.inline_data.data == PICTURE
    return f"{is_same} {about.version} {about.mime_type} {about.custom_metadata} {await tool_context.list_artifacts()}"


def opened(service: Open) -> roost.AgentService:
    return service({"helper": Adk(models.agent(draw, look))})


def ask(service: roost.AgentService, talk: str, text: str, user: str = "ann") -> str:
    service.add_message(user, talk, text)
    return settled(service, user, talk)[-1].content.removeprefix("the tool says ")


def test_an_artifact_is_there_after_a_restart_with_all_its_versions(service: Open) -> None:
    one = opened(service)
    talk = one.create_talk_session("ann", profile="helper")
    assert [ask(one, talk, "call draw name=a.png") for _ in range(2)] == ["version 0", "version 1"]
    one.close()
    one = opened(service)
    assert ask(one, talk, "call look name=a.png") == "True 1 image/png {'by': 'me'} ['a.png']"
    assert ask(one, talk, "call draw name=a.png") == "version 2"


def test_artifacts_belong_to_the_talk_or_to_the_user(service: Open) -> None:
    one = opened(service)
    first, second = (one.create_talk_session("ann", profile="helper") for _ in range(2))
    for name in ("a.png", "user:b.png"):
        ask(one, first, f"call draw name={name}")
    assert ask(one, second, "call look name=a.png") == "nothing; there are ['user:b.png']"
    assert ask(one, second, "call look name=user:b.png").startswith("True 0 ")
    bobs = one.create_talk_session("bob", profile="helper")
    assert ask(one, bobs, "call look name=user:b.png", "bob") == "nothing; there are []"


def test_artifacts_of_a_talk_go_with_it(service: Open) -> None:
    one = opened(service)
    talk = one.create_talk_session("ann", profile="helper")
    ask(one, talk, "call draw name=a.png")
    one.delete("ann", talk)
    store = one.roost.context.store

    async def left() -> object:
        return await store.read(artifacts.names, talk, "")

    assert drive(left()) == []
