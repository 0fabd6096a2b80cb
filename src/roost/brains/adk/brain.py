"""Turn of an ADK agent: passes new messages to the Runner, and yields its output."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
from google.adk.runners import Runner
from google.adk.telemetry.context import ContentCapturingMode, TelemetryConfig
from google.adk.utils import _sync_runner
from google.genai import types

from roost.brains.adk import errors
from roost.brains.adk.artifacts import StoredArtifacts
from roost.brains.adk.attachments import parts_of
from roost.brains.adk.loading import app_of
from roost.brains.adk.memory import StoredMemory
from roost.brains.adk.output import EventOutput
from roost.brains.adk.plugin import RoostPlugin
from roost.brains.adk.sessions import Sessions, content_of
from roost.brains.adk.threads import own_threads
from roost.brains.adk.warm_up import warm_up
from roost.brains.chat.context import prompt
from roost.brains.meeting_prompt import as_prompt
from roost.core.talks.side_channels import Channel
from roost.ports import Chunk, Turn

_NO_CONTENT = TelemetryConfig(capture_message_content=ContentCapturingMode.NO_CONTENT)
_CONTENT_VARIABLES = ("ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
RECENT = 80
"""Default number of newest messages that an agent is shown, approximately."""

logging.getLogger("google_adk.google.adk.telemetry._metrics").setLevel(logging.ERROR)
"""The logger warns at each call of a model that reports no token usage; it is silenced."""


class Adk:
    """Brain made of an agent or app of the ADK."""

    def __init__(self, agent: Any, name: str = "") -> None:
        self._app = app_of(agent, name)
        root = self._app.root_agent
        self._author = root.name if root else self._app.name
        self._name = str(getattr(root, "_adk_origin_app_name", None) or self._app.name)
        """Name of the app as `adk` derives it, from the folder if there is one; the key of user and app state."""

    def prepare(self) -> None:
        """Warm up the ADK; called once on a thread, before the first turn."""
        warm_up()

    def close(self) -> None:
        """End the tool threads of closed loops; called when all runs are over."""
        with _sync_runner._TOOL_THREAD_POOL_LOCK:
            _sync_runner._shutdown_closed_loop_pools()

    async def __call__(self, turn: Turn) -> AsyncIterator[Chunk]:
        app, turn = self._app, as_prompt(turn)
        output = EventOutput(turn.tool_seconds)
        sessions = Sessions(turn, turn.profile.recent_messages or RECENT, self._author, output)
        part = RoostPlugin(turn, sessions, output)
        runner = Runner(
            app_name=self._name,
            app=app.model_copy(update={"plugins": [part, *app.plugins]}),
            session_service=sessions,
            artifact_service=StoredArtifacts(turn),
            memory_service=StoredMemory(turn),
        )
        new = await sessions.open(self._name, app.root_agent)
        if sessions.summary is not None and sessions.summary.is_new:
            yield Chunk(sessions.summary.noted(), Channel.SUMMARY)
        sessions.assign(new)
        parts = [part for message in new for part in parts_of(message)]
        said = types.Content(role="user", parts=await sessions.files.resolve(parts))
        running = runner.run_async(
            user_id=turn.user_id,
            session_id=sessions.session_id,
            run_config=_config(turn),
            new_message=said if turn.kind == "talk" else content_of([prompt(turn, turn.text)]),
        )
        last = None
        try:
            with own_threads(turn):
                async with aclosing(running) as events:
                    async for event in events:
                        for chunk in output.of(event):
                            yield chunk
                        last = event
            errors.check(last)
            await sessions.finish()
            for chunk in output.end():
                yield chunk
        except Exception as error:
            raise errors.classified(error, part.failed) from error


def _config(turn: Turn) -> RunConfig:
    """Return the configuration: streaming, and blocking tools on threads."""
    return RunConfig(
        streaming_mode=StreamingMode.SSE,
        tool_thread_pool_config=ToolThreadPoolConfig(),
        max_llm_calls=turn.profile.steps,
        telemetry=None if _is_content_wanted() else _NO_CONTENT,
    )


def _is_content_wanted() -> bool:
    """Return whether the operator configured content in spans; by default the ADK may record all of it."""
    return any(os.environ.get(name) for name in _CONTENT_VARIABLES)
