"""Brain `gguf`: local models, each loaded once for all talks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any

from roost.brains.chat.context import FULL
from roost.brains.chat.dialogue import Dialogue, ModelAnswer, ToolCall
from roost.brains.chat.tool_loop import Piece, ToolLoop
from roost.brains.gguf.messages import choosing, chosen, join, messages_of, offered
from roost.brains.gguf.model import GgufModel
from roost.brains.meeting_prompt import as_prompt
from roost.brains.model_files import ModelFiles
from roost.core.limits.usage import NOTHING, Usage
from roost.core.talks.side_channels import Channel
from roost.ports import Chunk, Host, OfferedTool, Profile, Turn

WINDOW = 4096
"""Default context window in tokens, input and answer together, if the model supports it. More costs memory and
time."""
ANSWER = 512
"""Default limit of an answer in tokens."""
SUMS_UP = 8192
"""Smallest window with which summaries are used: in a smaller one they would leave little room."""
SAMPLING = {"temperature": 0.2, "top_p": 0.9, "repeat_penalty": 1.1}
"""Sampling that works for small models."""


class Gguf:
    """Brain for all profiles of this kind."""

    def __init__(self, host: Host, files: ModelFiles) -> None:
        self._host = host
        self._files = files
        self._lock = host.lock()
        self._models: dict[tuple[Path, int], GgufModel] = {}

    def __call__(self, turn: Turn) -> AsyncGenerator[Piece]:
        turn = as_prompt(turn)
        return ToolLoop(turn, LocalModel(turn, self._model(turn.profile))).answer()

    def prepare(self, profile: Profile) -> None:
        """Check the model's file, which may take long; raise BrainFailed if it cannot be used here."""
        self._files.check(profile.model)
        self._model(profile)

    def is_prepared(self, profile: Profile) -> bool:
        return (self._files.file(profile.model), profile.window or WINDOW) in self._models

    def close(self) -> None:
        with self._lock:
            models = list(self._models.values())
            self._models.clear()
        for model in models:
            model.close()

    def _model(self, profile: Profile) -> GgufModel:
        key = self._files.file(profile.model), profile.window or WINDOW
        with self._lock:
            if key not in self._models:
                self._models[key] = GgufModel(self._host, *key)
            return self._models[key]


class LocalModel:
    """Local model as one run uses it."""

    def __init__(self, turn: Turn, model: GgufModel) -> None:
        window, self._most = turn.profile.window or WINDOW, turn.profile.max_tokens or ANSWER
        self._turn = turn
        self._model = model
        self.name = model.name
        self.window = min(window, int((window - min(self._most, window // 2)) / FULL))
        self._in_words = not model.takes_tools and turn.profile.tool_choice == "required"
        """True if tools are described in the prompt, since the model's template has none."""
        self.takes_tools = model.takes_tools or self._in_words
        self.sums_up = window >= SUMS_UP

    async def ask(
        self, dialogue: Dialogue, tools: Sequence[OfferedTool], most: int | None, *, must_call: bool
    ) -> AsyncGenerator[Piece | ModelAnswer]:
        thought, text, usage = "", "", NOTHING
        calls: list[ToolCall] = []
        chooses = must_call and self._in_words
        asked = self._model.ask(self._request(dialogue, tools, min(most or self._most, self._most), must_call))
        try:
            while (heard := await asked.next()) is not None:
                if isinstance(heard, Usage):
                    usage = heard
                    self._turn.spend(usage)
                elif isinstance(heard, list):
                    join(calls, heard)
                else:
                    if isinstance(heard, str):
                        text += heard
                    elif heard.channel == Channel.THINKING:
                        thought += heard.text
                    if not (chooses and isinstance(heard, str)):
                        yield heard
        finally:
            self._model.drop(asked)
        if chooses:
            calls, text = [chosen(text)], ""
        yield ModelAnswer(text, tuple(calls), tokens=usage.tokens, own=(thought, usage))

    def recorded(self, answer: ModelAnswer) -> Any:
        thought, usage = answer.own
        calls = [[call.tool, call.arguments, call.call_id] for call in answer.calls]
        return {
            "thought": thought,
            "text": answer.text,
            "calls": calls,
            "used": [usage.input_tokens, usage.output_tokens],
        }

    def recalled(self, recorded: Any) -> Iterator[Piece | ModelAnswer]:
        read, said = recorded["used"]
        usage = Usage(read, said, 0.0, self.name)
        self._turn.spend(usage)
        if recorded["thought"]:
            yield Chunk(recorded["thought"], Channel.THINKING)
        if recorded["text"]:
            yield str(recorded["text"])
        yield ModelAnswer(recorded["text"], tuple(ToolCall(*call) for call in recorded["calls"]), tokens=usage.tokens)

    def _request(self, dialogue: Dialogue, tools: Sequence[OfferedTool], most: int, must_call: bool) -> dict[str, Any]:
        profile = self._turn.profile
        request = {**SAMPLING, "stream": True, "return_progress": True, "stream_options": {"include_usage": True}}
        messages = messages_of(dialogue, with_tools=self.takes_tools, in_words=self._in_words)
        request |= {"messages": messages, "max_tokens": most}
        if profile.temperature is not None:
            request["temperature"] = profile.temperature
        if tools and (must_call or not self._in_words):
            request |= choosing(tools, messages) if self._in_words else {"tools": offered(tools)}
            request["repeat_penalty"] = 1.0  # a tool call repeats earlier text
        if must_call and not self._in_words:
            request["tool_choice"] = "required"
        return request
