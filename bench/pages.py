"""Pages: what idle tabs cost, and how late a token is on the page.

A tab here is a WebSocket that speaks Streamlit's own protocol, and one for the live stream, as a browser's tab has,
without the browser: a hundred of those would measure the browser. A tab that polls says that it cannot have the stream.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import roost
from bench.figures import Figure, bench, percentile
from bench.startup import Server

SETTINGS = 'default_profile = "time"\n[profiles.time]\nbrain = "bench.pages:tells_the_time"\n'
_TOKEN = re.compile(r"@(\d+\.\d{4})")


class Tab:
    """One open page: that of a talk, or with `page` another one, which is drawn again with all news."""

    def __init__(
        self, url: str, query: str = "", *, polls: bool = False, talk: str | None = None, page: str | None = None
    ) -> None:
        self._url = url
        self.talk = talk
        self._query = query
        self._polls = polls
        self._page = page
        self._refresh = ""
        """The element that asks for a new run of the page."""
        self._fragment = ("", 0.1)
        self._tasks: list[asyncio.Task[None]] = []
        self.cookie = ""
        self.looks = 0
        """Number of requests to the page, and of notices from the stream."""
        self.drawn = asyncio.Event()
        """A run of the page has ended."""
        self.runs = 0
        self.lags: dict[str, float] = {}
        """Latency of each token that named its time."""

    async def __aenter__(self) -> Self:
        import websockets

        self.cookie = self.cookie or await asyncio.get_running_loop().run_in_executor(None, visitor_cookie, self._url)
        headers = {"Cookie": self.cookie, "Origin": self._url}
        address = self._url.replace("http", "ws") + "/_stcore/stream"
        self._socket = await websockets.connect(address, additional_headers=headers, max_size=None)
        self._tasks.append(asyncio.create_task(self._read(), name="tab reads"))
        await self._ask(None)
        if self._polls:
            self._tasks.append(asyncio.create_task(self._pulse(), name="tab asks"))
        else:
            address = self._url.replace("http", "ws") + "/api/v1/live"
            self._live = await websockets.connect(address, additional_headers=headers, max_size=None)
            self._tasks.append(asyncio.create_task(self._listen(), name="tab listens"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await self._socket.close()
        if not self._polls:
            await self._live.close()

    async def _ask(self, fragment: str | None, element: str = "", event: tuple[str, str] = ("stream", "lost")) -> None:
        """Have the page run; an element may report an event, by default that there is no stream."""
        from streamlit.proto.BackMsg_pb2 import BackMsg

        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.page_name = self._page or ""
        if element:
            state = message.rerun_script.widget_states.widgets.add()
            state.id = f"$$STREAMLIT_INTERNAL_KEY_{element}__events"
            state.json_trigger_value = json.dumps([{"event": event[0], "value": event[1]}])
        if fragment is not None:
            message.rerun_script.fragment_id = fragment
            message.rerun_script.is_auto_rerun = True
        await self._socket.send(message.SerializeToString())

    async def _read(self) -> None:
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        is_new = self._polls
        async for data in self._socket:
            message = ForwardMsg()
            message.ParseFromString(data)
            kind = message.WhichOneof("type")
            if kind == "auto_rerun":
                self._fragment = (message.auto_rerun.fragment_id, message.auto_rerun.interval)
            elif kind == "script_finished":
                self.runs += 1
                self.drawn.set()
            elif kind == "delta":
                component = message.delta.new_element.bidi_component
                if component.component_name.endswith("roost_refresh"):
                    self._refresh = component.id
                element = component.id if component.component_name.endswith("message_list") else ""
                if element and is_new:
                    is_new = False
                    await self._ask(None, element)
                for token in _TOKEN.findall(str(message.delta)):
                    self.lags.setdefault(token, time.time() - float(token))

    async def _listen(self) -> None:
        await self._live.send(json.dumps({"open": self.talk} if self._page is None else {"watch": {}}))
        news = None
        async for frame in self._live:
            self.looks += 1
            if self._page is not None and news != (news := json.loads(frame).get("news", news)):
                await self._ask(None, self._refresh, ("refresh", str(news)))
            for token in _TOKEN.findall(str(frame)):
                self.lags.setdefault(token, time.time() - float(token))

    async def _pulse(self) -> None:
        while True:
            fragment, interval = self._fragment
            await asyncio.sleep(interval)
            if fragment:
                await self._ask(fragment)
                self.looks += 1


def visitor_cookie(url: str) -> str:
    from urllib.request import Request, urlopen

    with urlopen(Request(url + "/", headers={"Accept": "text/html"}), timeout=10) as answer:
        return str(answer.headers["set-cookie"]).split(";")[0]


async def tells_the_time(turn: roost.Turn) -> AsyncIterator[str]:
    """A brain for the measurement of lags."""
    for _ in range(100):
        yield f"@{time.time():.4f} "
        await asyncio.sleep(0.073)


@bench("tokens")
def tokens(folder: Path) -> Iterator[Figure]:
    """From the brain to the tab, by polling."""
    (folder / "tokens").mkdir()
    (folder / "roost.toml").write_text(SETTINGS)

    async def main(server: Server) -> list[float]:
        cookie = visitor_cookie(server.url)
        talk = str(_post(server.url, cookie, "/talks", {})["talkSessionId"])
        _post(server.url, cookie, f"/talks/{talk}/messages", {"content": "go"})
        tab = Tab(server.url, f"talk={talk}", polls=True)
        tab.cookie = cookie
        async with tab:
            await asyncio.sleep(9)  # the brain takes seven
        assert len(tab.lags) > 50, f"only {len(tab.lags)} tokens came"
        return list(tab.lags.values())[5:]

    with Server(
        folder / "tokens", ROOST_CONFIG=str(folder / "roost.toml"), PYTHONPATH=os.pathsep.join(sys.path)
    ) as server:
        lags = asyncio.run(main(server))
    yield Figure("token_lag_polling_p50", percentile(lags, 50) * 1e3, "ms", len(lags), 200)


def _post(url: str, cookie: str, path: str, body: dict[str, Any]) -> dict[str, object]:
    from urllib.request import Request, urlopen

    headers = {"Cookie": cookie, "Origin": url, "Content-Type": "application/json"}
    with urlopen(Request(f"{url}/api/v1{path}", json.dumps(body).encode(), headers), timeout=10) as answer:
        found: dict[str, object] = json.loads(answer.read() or b"{}")
        return found


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@bench("idle-tabs")
def idle_tabs(folder: Path) -> Iterator[Figure]:
    """The CPU that a hundred idle tabs cost the server, each, and how quickly it still answers."""
    count, watched = 100, 20.0

    async def main(server: Server) -> tuple[float, float]:
        tabs = [Tab(server.url) for _ in range(count)]
        for tab in tabs:
            await tab.__aenter__()
        await asyncio.sleep(5)  # until all have settled
        with_tabs = cpu_seconds(server.pid)
        answers = await _answer_times(server.url, watched)
        used = cpu_seconds(server.pid) - with_tabs
        looks = sum(tab.looks for tab in tabs)
        for tab in tabs:
            await tab.__aexit__(None, None, None)
        assert looks >= count * watched / 20, f"the tabs were told only {looks} times that the server is there"
        return used, percentile(answers, 99)

    with Server(folder / "idle") as server:
        alone = cpu_seconds(server.pid)
        time.sleep(5)
        idle = (cpu_seconds(server.pid) - alone) / 5
        used, slowest = asyncio.run(main(server))
    yield Figure("idle_tab_cpu", max(0.0, used / watched - idle) / count * 100, "% core", count, 0.2)
    yield Figure("answer_beside_100_tabs_p99", slowest * 1e3, "ms", count, 50)


@bench("live-pages")
def live_pages(folder: Path) -> Iterator[Figure]:
    """A hundred open lists of agents while agents change twice a second; and the list of ten thousand agents."""
    count, watched, agents = 100, 20.0, 10_000

    async def main(server: Server, cookie: str) -> tuple[float, float, int]:
        tabs = [Tab(server.url, page="agents") for _ in range(count)]
        for tab in tabs:
            tab.cookie = cookie
            await tab.__aenter__()
            await tab.drawn.wait()
        await asyncio.sleep(5)  # until all have settled
        with_tabs, before = cpu_seconds(server.pid), sum(tab.runs for tab in tabs)
        changing = asyncio.create_task(asyncio.to_thread(_change, server.url, cookie, watched))
        answers = await _answer_times(server.url, watched)
        await changing
        used, runs = cpu_seconds(server.pid) - with_tabs, sum(tab.runs for tab in tabs) - before
        for tab in tabs:
            await tab.__aexit__(None, None, None)
        assert runs >= count * watched / 4, f"the tabs were drawn only {runs} times"
        return used, percentile(answers, 99), runs

    async def opened(server: Server, cookie: str) -> list[float]:
        times = []
        for _ in range(10):
            tab = Tab(server.url, page="agents")
            tab.cookie = cookie
            start = time.perf_counter()
            async with tab:
                await tab.drawn.wait()
                times.append(time.perf_counter() - start)
        return times

    with Server(folder / "live-pages", ROOST_LIMITS__OPEN_REQUESTS_PER_USER="200") as server:
        cookie = visitor_cookie(server.url)
        for number in range(20):
            _post(server.url, cookie, "/agents", {"agentId": f"d{number}", "config": {"profile": "echo"}})
        used, slowest, runs = asyncio.run(main(server, cookie))
        for start in range(0, agents, 1_000):
            ids = [f"e{number}" for number in range(start, start + 1_000)]
            _post(server.url, cookie, "/agents/create-many", {"agentIds": ids, "config": {"profile": "echo"}})
        times = asyncio.run(opened(server, cookie))
    yield Figure("live_page_run_cpu", used / runs * 1e3, "ms", runs)
    yield Figure("cpu_of_100_live_pages", used / watched * 100, "% core", count)
    yield Figure("answer_beside_100_live_pages_p99", slowest * 1e3, "ms", count, 50)
    yield Figure("list_of_10000_agents_p50", percentile(times, 50) * 1e3, "ms", len(times), 1_000)


def _change(url: str, cookie: str, seconds: float) -> None:
    """Stop and start an agent, twice a second."""
    end, number = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        _post(url, cookie, f"/agents/d0/{'start' if number % 2 else 'stop'}", {})
        number += 1
        time.sleep(0.5)


@bench("live-tabs")
def live_tabs(folder: Path) -> Iterator[Figure]:
    """From the brain to the tab beside a hundred tabs, of which twenty have live text."""
    count, live = 100, 20
    (folder / "live-tabs").mkdir()
    (folder / "roost.toml").write_text(
        'default_profile = "time"\n[profiles.time]\nbrain = "bench.pages:tells_the_time"\n'
    )

    async def main(server: Server) -> list[float]:
        tabs = [Tab(server.url) for _ in range(count - live)]
        for _ in range(live):
            cookie = visitor_cookie(server.url)
            talk = str(_post(server.url, cookie, "/talks", {})["talkSessionId"])
            tabs.append(Tab(server.url, f"talk={talk}", talk=talk))
            tabs[-1].cookie = cookie
        for tab in tabs:
            await tab.__aenter__()
        await asyncio.sleep(5)  # until all have settled
        for tab in tabs[-live:]:
            await asyncio.to_thread(_post, server.url, tab.cookie, f"/talks/{tab.talk}/messages", {"content": "go"})
        await asyncio.sleep(10)  # the brains take seven
        for tab in tabs:
            await tab.__aexit__(None, None, None)
        assert all(len(tab.lags) > 50 for tab in tabs[-live:]), "too few tokens came"
        return [lag for tab in tabs[-live:] for lag in list(tab.lags.values())[5:]]

    environment = {"ROOST_CONFIG": str(folder / "roost.toml"), "PYTHONPATH": os.pathsep.join(sys.path)}
    with Server(folder / "live-tabs", **environment) as server:
        lags = asyncio.run(main(server))
    yield Figure("token_lag_of_20_beside_100_tabs_p50", percentile(lags, 50) * 1e3, "ms", len(lags), 40)
    yield Figure("token_lag_of_20_beside_100_tabs_p99", percentile(lags, 99) * 1e3, "ms", len(lags), 150)


async def _answer_times(url: str, seconds: float) -> list[float]:
    from urllib.request import urlopen

    def ask() -> float:
        start = time.perf_counter()
        with urlopen(url + "/healthz", timeout=10) as answer:
            answer.read()
        return time.perf_counter() - start

    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        times.append(await asyncio.get_running_loop().run_in_executor(None, ask))
        await asyncio.sleep(0.1)
    return times
