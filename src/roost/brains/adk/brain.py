"""One turn of an ADK agent: the Runner is given what is new, and what comes of it is said as it comes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
from google.adk.artifacts import InMemoryArtifactService
from google.adk.runners import Runner
from google.adk.utils import _sync_runner

from roost.brains.adk import faults
from roost.brains.adk.loading import app_of
from roost.brains.adk.memory import Recalled
from roost.brains.adk.plugin import Part
from roost.brains.adk.rehearsal import rehearse
from roost.brains.adk.sessions import Sessions, content_of
from roost.brains.adk.voice import Voice
from roost.brains.attending import attending
from roost.brains.chat.context import prompt
from roost.ports import Chunk, Turn

RECENT = 80
"""About how many of the newest messages an agent is shown, if its profile says nothing else."""

logging.getLogger("google_adk.google.adk.telemetry._metrics").setLevel(logging.ERROR)
"""It warns at each call of a model that does not tell how many tokens it took."""


class Adk:
    """A brain made of an agent, or of an app, of the ADK."""

    def __init__(self, agent: Any, name: str = "") -> None:
        self._app = app_of(agent, name)
        root = self._app.root_agent
        self._author = root.name if root else self._app.name
        self._name = str(getattr(root, "_adk_origin_app_name", None) or self._app.name)
        """As `adk` calls it: by its folder, if it is in one. What it keeps for users and for all is found by that."""
        self._artifacts = InMemoryArtifactService()

    def prepare(self) -> None:
        """Called once before it is first asked, on a thread."""
        rehearse()

    def close(self) -> None:
        """Called when all runs are over: the threads on which tools have run end with the loops that they ran for."""
        with _sync_runner._TOOL_THREAD_POOL_LOCK:
            _sync_runner._shutdown_closed_loop_pools()

    async def __call__(self, turn: Turn) -> AsyncIterator[Chunk]:
        app, turn = self._app, attending(turn)
        sessions, voice = Sessions(turn, turn.profile.recent_messages or RECENT, self._author), Voice()
        part = Part(turn, sessions, voice)
        runner = Runner(
            app_name=self._name, app=app.model_copy(update={"plugins": [part, *app.plugins]}), session_service=sessions,
            artifact_service=self._artifacts, memory_service=Recalled(turn),
        )  # fmt: skip
        new = await sessions.open(self._name)
        sessions.took(new)
        said = [message.content for message in new] if turn.kind == "talk" else [prompt(turn, turn.text)]
        running = runner.run_async(
            user_id=turn.user_id, session_id=sessions.session_id, run_config=_config(turn),
            new_message=content_of(said),
        )  # fmt: skip
        last = None
        try:
            async with aclosing(running) as events:
                async for event in events:
                    for chunk in voice.of(event):
                        yield chunk
                    last = event
            faults.check(last)
            await part.questions.answered()
        except BaseException as error:
            await part.questions.failed(error)
            if not isinstance(error, Exception):
                raise
            raise faults.sorted_out(error, part.failed) from error


def _config(turn: Turn) -> RunConfig:
    """Words as they come; tools that block on threads, where they hold up nobody."""
    return RunConfig(
        streaming_mode=StreamingMode.SSE, tool_thread_pool_config=ToolThreadPoolConfig(),
        max_llm_calls=turn.profile.steps,
    )  # fmt: skip
