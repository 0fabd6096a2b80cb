"""An agent of the ADK: what Roost adds to the bare Runner, a turn and a piece; and turn 1,000 beside turn 10."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from statistics import median

from google.adk.agents import LlmAgent
from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

import roost
from bench.figures import Figure, bench, progress
from roost.brains.adk import Adk

TURNS = 100
PIECES = 2_000
LONG = 1_000


class Instant(BaseLlm):
    """Says a number of words at once."""

    model: str = "instant"
    words: int = 3

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        for _ in range(self.words):
            yield _said("word ", partial=True)
        yield _said("word " * self.words)


def _said(text: str, partial: bool = False) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=partial)


@bench("adk")
def measure(folder: Path) -> Iterator[Figure]:
    yield from _beside(folder / "turns.db", 3, TURNS, "turn", 1)
    yield from _beside(folder / "pieces.db", PIECES, 5, "piece", PIECES)
    with _opened(folder / "long.db", 3) as service:
        long, pairs = Talk(service), []
        for number in range(LONG):
            long.turn()
            if number % 100 == 0:
                progress(f"turn {number} of {LONG}")
        for _ in range(5):
            short = Talk(service)
            for _ in range(8):
                short.turn()
            pairs += [(short.turn(), long.turn()) for _ in range(4)]  # in turn: the machine changes its speed
    ratio = median(late for _, late in pairs) / median(early for early, _ in pairs)
    yield Figure("adk_turn_1000_beside_turn_10", ratio, "×", LONG, goal=1.5)


def _beside(file: Path, words: int, turns: int, what: str, parts: int) -> Iterator[Figure]:
    bare = Bare(words)
    with _opened(file, words) as service:
        talk = Talk(service)
        pairs = [(bare.turn(), talk.turn()) for _ in range(turns + 1)][1:]
    yield Figure(f"adk_bare_{what}", median(alone for alone, _ in pairs) / parts * 1e3, "ms", turns)
    yield Figure(f"adk_{what}", median(ours for _, ours in pairs) / parts * 1e3, "ms", turns)


class Bare:
    """The Runner alone, with the ADK's session service in memory; all turns in one session, as many as are shown."""

    def __init__(self, words: int) -> None:
        self._sessions = InMemorySessionService()
        self._runner = Runner(app_name="bare", agent=_agent(words), session_service=self._sessions)
        recent = GetSessionConfig(num_recent_events=60)
        self._config = RunConfig(streaming_mode=StreamingMode.SSE, get_session_config=recent)
        self._loop = asyncio.new_event_loop()
        made = self._sessions.create_session(app_name="bare", user_id="ann", session_id="talk")
        self._loop.run_until_complete(made)

    def turn(self) -> float:
        start = time.perf_counter()
        self._loop.run_until_complete(self._turn())
        return time.perf_counter() - start

    async def _turn(self) -> None:
        said = types.Content(role="user", parts=[types.Part(text="hello")])
        async for _ in self._runner.run_async(
            user_id="ann", session_id="talk", new_message=said, run_config=self._config
        ):
            pass


class Talk:
    """Turns of one talk, each from the message to the end of its answer."""

    def __init__(self, service: roost.AgentService) -> None:
        self._service = service
        self._talk = service.create_talk_session("ann", profile="instant")
        self._cursor: str | None = None

    def turn(self) -> float:
        start = time.perf_counter()
        self._service.add_message("ann", self._talk, "hello")
        for change in self._service.stream_messages("ann", self._talk, after=self._cursor):
            self._cursor = change.cursor
        return time.perf_counter() - start


def _agent(words: int) -> LlmAgent:
    return LlmAgent(name="instant", model=Instant(words=words))


def _opened(file: Path, words: int) -> roost.AgentService:
    return roost.open(f"sqlite:///{file}", brains={"instant": Adk(_agent(words))})
