"""The page without a browser: Streamlit's AppTest on a real service."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from html import unescape
from itertools import count
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

import roost
from roost.brains.chat.context import note
from roost.core.talks.messages import Message, Status
from roost.ui import access
from tests.servers import ROOT

SCRIPT = str(ROOT / "src" / "roost" / "ui" / "app.py")
USER = "ann"
_keys = map("key{}".format, count())


@roost.tool(approval=True)
async def pay(euros: int) -> str:
    return f"{euros} paid"


async def brain(turn: roost.Turn) -> AsyncIterator[str | roost.Chunk]:
    """Answers at once; `hold` says a first word and then nothing until it is stopped; `fail` fails.

    `pay` asks a person first.
    """
    if turn.text.startswith("forget"):
        yield roost.Chunk(note("", 1, 4_096), "summary")
    yield f"Answer to {turn.text}"
    if turn.text.startswith("hold"):
        await asyncio.Event().wait()
    if turn.text.startswith("pay"):
        try:
            yield f": {await turn.call_tool('pay', {'euros': 5})}"
        except roost.ToolFailed as error:
            yield f": {error}"
    if turn.text.startswith("fail"):
        raise ValueError("broken inside")


@dataclass
class Tab:
    """One browser tab on the page, as AppTest sees it."""

    service: roost.AgentService
    place: str = field(default_factory=lambda: next(_keys))
    """The empty page on which a first message is typed."""
    app: AppTest = field(default_factory=lambda: AppTest.from_file(SCRIPT, default_timeout=30))

    @property
    def talk_id(self) -> str | None:
        found = self.app.query_params.get("talk")
        return found[0] if isinstance(found, list) else found

    def look(self) -> Tab:
        """What the pulse does when something has changed: the whole page is drawn again."""
        self.app.run()
        assert not self.app.exception
        return self

    def open(self, talk_id: str) -> Tab:
        """Open a talk by its URL: the first page, or back or forward."""
        self.app.query_params["talk"] = talk_id
        is_first = not self.app.get("bidi_component")
        return self.look() if is_first else self.report("input", "command", {"name": "follow"})

    def say(self, text: str) -> Tab:
        """Send a message from the input, as the browser does."""
        return self.send(next(_keys), text)

    def send(self, key: str, text: str, **more: object) -> Tab:
        sent = {"key": key, "text": text, "talk": self.input["talk"], "place": self.place, **more}
        return self.report("input", "send", [sent])

    def stop(self) -> Tab:
        return self.report("input", "send", [{"key": next(_keys), "stop": True, "talk": self.input["talk"]}])

    def click(self, key: str) -> Tab:
        if key == "new_talk":
            self.place = next(_keys)
        self.app.button(key=key).click().run()
        assert not self.app.exception
        return self

    def choose(self, key: str, option: str) -> Tab:
        """Take an option of a menu."""
        self.app.menu_button(key=key).click(option).run()
        assert not self.app.exception
        return self

    def has(self, key: str) -> bool:
        return any(button.key == key for button in self.app.button)

    @property
    def given(self) -> dict[str, Any]:
        """What the message list is given."""
        return self._given("list")

    @property
    def input(self) -> dict[str, Any]:
        """What the message input is given."""
        return self._given("input")

    def _given(self, element: str) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self._element(element).proto.json)
        return data

    def _element(self, name: str) -> Any:
        [found] = [one for one in self.app.get("bidi_component") if name in one.proto.component_name]
        return found

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.given.get("messages", [])
        return found

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Who said what: the source of a finished message, the HTML of one that is being written."""
        return [(one["sender"], one.get("source", "".join(one["text"]["add"]))) for one in self.messages]

    def act(self, event: str, value: object) -> Tab:
        """Report an event, as the message list does in the browser."""
        return self.report("list", event, value)

    def report(self, name: str, event: str, value: object) -> Tab:
        element = self._element(name)
        states = self.app._tree.get_widget_states()
        event_id = f"$$STREAMLIT_INTERNAL_KEY_{element.proto.id}__events"
        reported = json.dumps([{"event": event, "value": value}])
        # Streamlit puts what was clicked before, and not handled yet, after it.
        event_first = [WidgetState(id=event_id, json_trigger_value=reported), *states.widgets]
        self.app._run(WidgetStates(widgets=event_first))
        assert not self.app.exception
        return self

    def show_older(self) -> Tab:
        return self.act("action", {"name": "older", "seq": self.messages[0]["seq"]})

    @property
    def notices(self) -> list[str]:
        """What stands above the line to type in."""
        return [unescape(re.sub("<[^>]*>", "", notice)) for notice in self._html("roost-notice")]

    def _html(self, name: str) -> list[str]:
        return [html.proto.body for html in self.app.get("html") if f'class="{name}"' in html.proto.body]

    def settle(self) -> list[Message]:
        """Wait until nothing runs, and give all messages as the service has them."""
        talk_id = self.talk_id
        assert talk_id is not None
        for _ in self.service.stream_messages(USER, talk_id):
            pass
        return self.stored()

    def stored(self) -> list[Message]:
        assert self.talk_id is not None
        messages = self.service.get_messages(USER, self.talk_id, limit=1000).messages
        return [message for message in messages if message.status is not Status.WITHDRAWN]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[roost.AgentService]:
    url = f"sqlite:///{tmp_path_factory.mktemp('ui') / 'roost.db'}"
    with roost.open(url, brains={"brain": brain, "other": brain}, default="brain", tools=[pay]) as opened:
        access.host(opened, lambda _: USER)
        yield opened


@pytest.fixture
def tab(service: roost.AgentService) -> Tab:
    return Tab(service).look()
