"""The page without a browser: Streamlit's AppTest on a real service."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Self

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx
from streamlit.testing.v1 import AppTest, app_test
from streamlit.util import calc_hash

import roost
from roost.brains.chat.context import note
from roost.core.talks.messages import Message, Status
from roost.ui import access, callbacks
from roost.ui.shell.navigation import Route
from tests.servers import ROOT

SCRIPT = str(ROOT / "src" / "roost" / "ui" / "app.py")
USER = "ann"
_keys = map("key{}".format, count())


@roost.tool(approval=True)
async def pay(euros: int) -> str:
    return f"{euros} paid"


@roost.tool
async def price(sku: str) -> str:
    if sku == "ghost":
        raise ValueError("no such thing")
    return "<b>4</b> " + "x" * 2_000


async def brain(turn: roost.Turn) -> AsyncIterator[str | roost.Chunk]:
    """Answers at once; `hold` says a first word and then nothing until it is stopped; `fail` fails.

    `pay` asks a person first. `steps` calls a model and tools, asks the agent that it names, and then fails or not.
    """
    if turn.text.startswith("steps"):
        async for part in _with_steps(turn):
            yield part
        return
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


async def _with_steps(turn: roost.Turn) -> AsyncIterator[str]:
    _, asked, *more = turn.text.split()
    async with turn.model_call("m1 <i>", {"text": turn.text}) as call:
        call.response = {"text": "think", "usage": {"input_tokens": 310, "output_tokens": 25}}
    yield f"First line\n{await turn.call_tool('price', {'sku': 'tea'})}\n"
    try:
        await turn.call_tool("price", {"sku": "ghost"})
    except roost.ToolFailed as error:
        yield f"{error}\n"
    yield await turn.step("count", lambda: "counted") + "\n"
    if asked != "-":
        yield await turn.ask(f"agent:{asked}", "steps -")
    if more:
        raise ValueError("broken inside")


@dataclass
class Screen:
    """A page in one browser tab, as AppTest sees it."""

    app: AppTest = field(default_factory=lambda: AppTest.from_file(SCRIPT, default_timeout=30))

    def look(self) -> Self:
        """Draw the whole page again, as the browser asks when something has changed."""
        self.app.run()
        assert not self.app.exception
        return self

    def go(self, route: Route, **query: str) -> Self:
        """Open a page by its URL."""
        self.app._page_hash = calc_hash(route)
        self.app.query_params.clear()
        for name, value in query.items():
            self.app.query_params[name] = value
        return self.look()

    def click(self, key: str) -> Self:
        self.app.button(key=key).click().run()
        assert not self.app.exception
        return self

    def double_click(self, key: str) -> Self:
        """Click twice: the browser asks for the second run while the callback of the first one works."""
        self.app.button(key=key).click()
        states, asked = self.app._tree.get_widget_states(), False
        held = callbacks._held

        @contextmanager
        def interrupted() -> Iterator[None]:
            nonlocal asked
            with held():
                context: Any = get_script_run_ctx()
                if not asked:
                    asked = True
                    runner = context.session_state._yield_callback.__self__
                    runner.request_rerun(RerunData(context.query_string, states, context.page_script_hash))
                yield

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(callbacks, "_held", interrupted)
            self.app._run(states)
        assert asked
        assert not self.app.exception
        return self

    def has(self, key: str) -> bool:
        return any(button.key == key for button in self.app.button)

    def table(self, key: str) -> list[list[str]]:
        """Return the texts of a table, row by row; nothing if there is no such table."""
        found = [one for one in self.app.get("bidi_component") if one.proto.id.endswith(f"-{key}")]
        rows = json.loads(found[0].proto.json)["rows"] if found else []
        return [[cell if isinstance(cell, str) else cell["text"] for cell in row["cells"]] for row in rows]

    def row_ids(self, key: str) -> list[str]:
        """Return the ids of the rows of a table."""
        [found] = [one for one in self.app.get("bidi_component") if one.proto.id.endswith(f"-{key}")]
        return [row["id"] for row in json.loads(found.proto.json)["rows"]]

    def given(self, name: str) -> dict[str, Any]:
        """Return the data of an element of Roost, by a part of its name."""
        data: dict[str, Any] = json.loads(self._element(name).proto.json)
        return data

    def _element(self, name: str) -> Any:
        [found] = [one for one in self.app.get("bidi_component") if name in one.proto.component_name]
        return found

    def act_on(self, key: str, label: str, *row_ids: str) -> Self:
        """Choose these rows of a table, and click the button for them."""
        [found] = [one for one in self.app.get("bidi_component") if one.proto.id.endswith(f"-{key}")]
        return self._report(found, "action", {"label": label, "chosen": row_ids})

    def report(self, name: str, event: str, value: object) -> Self:
        """Report an event, as the element does in the browser."""
        return self._report(self._element(name), event, value)

    def _report(self, element: Any, event: str, value: object) -> Self:
        states = self.app._tree.get_widget_states()
        event_id = f"$$STREAMLIT_INTERNAL_KEY_{element.proto.id}__events"
        reported = json.dumps([{"event": event, "value": value}])
        # Streamlit puts what was clicked before, and not handled yet, after it.
        event_first = [WidgetState(id=event_id, json_trigger_value=reported), *states.widgets]
        self.app._run(WidgetStates(widgets=event_first))
        assert not self.app.exception
        return self

    @property
    def notices(self) -> list[str]:
        """Return the sentences of the notices on the page."""
        return [unescape(re.sub("<[^>]*>", "", notice)) for notice in self._html("roost-notice")]

    def _html(self, name: str) -> list[str]:
        return [html.proto.body for html in self.app.get("html") if f'class="{name}"' in html.proto.body]


@dataclass
class Tab(Screen):
    """The talk page."""

    service: roost.AgentService = field(kw_only=True)
    place: str = field(default_factory=lambda: next(_keys))
    """The empty page on which a first message is typed."""

    @property
    def talk_id(self) -> str | None:
        found = self.app.query_params.get("talk")
        return found[0] if isinstance(found, list) else found

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

    def click(self, key: str) -> Self:
        if key == "new_talk":
            self.place = next(_keys)
        return super().click(key)

    def choose(self, key: str, option: str) -> Tab:
        """Take an option of a menu."""
        self.app.menu_button(key=key).click(option).run()
        assert not self.app.exception
        return self

    @property
    def listed(self) -> dict[str, Any]:
        """Return the data of the message list."""
        return self.given("list")

    @property
    def input(self) -> dict[str, Any]:
        """Return the data of the message input."""
        return self.given("input")

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.listed.get("messages", [])
        return found

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Return senders and words: the source of a finished message, the HTML of one that is being written."""
        return [(one["sender"], one.get("source", "".join(one["text"]["add"]))) for one in self.messages]

    def act(self, event: str, value: object) -> Tab:
        """Report an event, as the message list does in the browser."""
        return self.report("list", event, value)

    def show_older(self) -> Tab:
        return self.act("action", {"name": "older", "seq": self.messages[0]["seq"]})

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


@pytest.fixture(scope="session", autouse=True)
def _own_folder() -> Iterator[None]:
    """A folder of AppTest for each process: that of its import ends with the first of those that share the tests."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(app_test, "TMP_DIR", SimpleNamespace(name=folder))
        yield


@pytest.fixture(scope="session", autouse=True)
def _packages_read_once() -> Iterator[None]:
    """AppTest searches all installed packages for components, each time it draws a page: a third of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(scope="session")
def store_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ui") / "roost.db"


@pytest.fixture(scope="session")
def service(store_file: Path) -> Iterator[roost.AgentService]:
    with roost.open(
        f"sqlite:///{store_file}", brains={"brain": brain, "other": brain}, default="brain", tools=[pay, price]
    ) as opened:
        access.host(opened, lambda _: USER)
        yield opened


@pytest.fixture
def tab(service: roost.AgentService) -> Tab:
    return Tab(service=service).look()
