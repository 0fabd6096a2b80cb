"""Models of providers: what Roost adds to a turn and to a piece, over pydantic-ai asking the same server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

import roost
from bench.figures import Figure, bench, percentile
from roost.brains.profiles import ProfileRegistry
from roost.service import AgentService
from roost.testing.provider import Provider
from roost.wiring import open_roost

if TYPE_CHECKING:
    from pydantic_ai.models import Model

PIECES, TURNS = 2_000, 60
Asking = Callable[[int], float]


@bench("llm")
def llm(folder: Path) -> Iterator[Figure]:
    """Short answers and long ones, by turns: asked with the bare library, and in a talk."""
    with Provider() as provider:
        profile = roost.Profile("llm", "llm", model="openai:any", base_url=provider.url)
        opened = open_roost(f"sqlite:///{folder}/llm.db", ProfileRegistry(None, [profile]), roost.Limits())
        with AgentService(opened) as service, asyncio.Runner() as runner:
            client, model = _open(provider.url)

            def talk_of(pieces: int) -> float:
                provider.plays(*["piece "] * pieces)
                talk = service.create_talk_session("ann")
                start = time.perf_counter()
                service.add_message("ann", talk, "go")
                for _ in service.stream_messages("ann", talk):
                    pass
                took = time.perf_counter() - start
                assert service.get_messages("ann", talk).messages[-1].content == "piece " * pieces
                return took

            def bare_of(pieces: int) -> float:
                provider.plays(*["piece "] * pieces)
                return runner.run(_bare(model, pieces))

            for pieces in (1, PIECES):  # all that is loaded and made once
                talk_of(pieces), bare_of(pieces)
            bare, ours = _quartiles(bare_of, talk_of, 1, TURNS)
            long_bare, long_ours = _quartiles(bare_of, talk_of, PIECES, 5)
            runner.run(client.aclose())
    yield Figure("llm_turn_bare", bare * 1e3, "ms", TURNS)
    yield Figure("llm_turn_over_bare", (ours - bare) * 1e3, "ms", TURNS)
    yield Figure("llm_piece_bare", (long_bare - bare) / PIECES * 1e6, "us", PIECES)
    over = ((long_ours - ours) - (long_bare - bare)) / PIECES
    yield Figure("llm_piece_over_bare", over * 1e6, "us", PIECES, 50)


def _quartiles(first: Asking, second: Asking, pieces: int, count: int) -> tuple[float, float]:
    """The time that a quarter of each stayed below: what others do on the machine matters less there."""
    pairs = [(first(pieces), second(pieces)) for _ in range(count)]
    return percentile([a for a, _ in pairs], 25), percentile([b for _, b in pairs], 25)


def _open(url: str) -> tuple[httpx2.AsyncClient, Model]:
    """A client that keeps its connections from turn to turn, as ours does."""
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = httpx2.AsyncClient(verify=False)
    return client, OpenAIChatModel("any", provider=OpenAIProvider(base_url=url, api_key="none", http_client=client))


async def _bare(model: Model, pieces: int) -> float:
    """The least that the library needs for it, without its agent."""
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    start = time.perf_counter()
    said = []
    async with model_request_stream(model, [ModelRequest.user_text_prompt("go")]) as stream:
        async for event in stream:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                said.append(event.part.content)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                said.append(event.delta.content_delta)
    assert "".join(said) == "piece " * pieces
    return time.perf_counter() - start
