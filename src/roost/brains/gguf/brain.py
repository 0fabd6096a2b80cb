"""The brain `gguf`: models on this machine, each loaded once for all talks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any

from roost.brains.attending import attending
from roost.brains.chat.answering import Answering, Piece
from roost.brains.chat.context import FULL
from roost.brains.chat.dialogue import Answer, Called, Dialogue
from roost.brains.files import Files
from roost.brains.gguf.messages import choosing, chosen, join, messages_of, offered
from roost.brains.gguf.model import Model
from roost.core.notes import Channel
from roost.core.usage import NOTHING, Usage
from roost.ports import Chunk, Host, Profile, Tool, Turn

WINDOW = 4096
"""Tokens that are kept in sight, if the model can and the profile does not say otherwise: of what was said, and of what
is answered. More costs memory and time."""
ANSWER = 512
"""Tokens of an answer, unless the profile says otherwise."""
SUMS_UP = 8192
"""A window from which on a model is asked for a summary: with less, it would see little else."""
SAMPLING = {"temperature": 0.2, "top_p": 0.9, "repeat_penalty": 1.1}
"""What small models are sensible with."""


class Gguf:
    """The brain, for all profiles of this kind."""

    def __init__(self, host: Host, files: Files) -> None:
        self._host = host
        self._files = files
        self._lock = host.lock()
        self._models: dict[tuple[Path, int], Model] = {}

    def __call__(self, turn: Turn) -> AsyncGenerator[Piece]:
        turn = attending(turn)
        return Answering(turn, Local(turn, self._model(turn.profile))).answer()

    def prepare(self, profile: Profile) -> None:
        """Look at its file, which may take long. Raises BrainFailed if it cannot answer here."""
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

    def _model(self, profile: Profile) -> Model:
        wanted = self._files.file(profile.model), profile.window or WINDOW
        with self._lock:
            if wanted not in self._models:
                self._models[wanted] = Model(self._host, *wanted)
            return self._models[wanted]


class Local:
    """A model on this machine, as one run asks it."""

    def __init__(self, turn: Turn, model: Model) -> None:
        window, self._most = turn.profile.window or WINDOW, turn.profile.max_tokens or ANSWER
        self._turn = turn
        self._model = model
        self.name = model.name
        self.window = min(window, int((window - min(self._most, window // 2)) / FULL))
        self._in_words = not model.takes_tools and turn.profile.tool_choice == "required"
        """Whether tools are put to it in words, since its template knows of none."""
        self.takes_tools = model.takes_tools or self._in_words
        self.sums_up = window >= SUMS_UP

    async def ask(
        self, dialogue: Dialogue, tools: Sequence[Tool], most: int | None, *, must_call: bool
    ) -> AsyncGenerator[Piece | Answer]:  # fmt: skip
        thought, text, usage = "", "", NOTHING
        calls: list[Called] = []
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
        yield Answer(text, tuple(calls), tokens=usage.tokens, own=(thought, usage))

    def recorded(self, answer: Answer) -> Any:
        thought, usage = answer.own
        calls = [[call.tool, call.arguments, call.call_id] for call in answer.calls]
        return {
            "thought": thought, "text": answer.text, "calls": calls, "used": [usage.input_tokens, usage.output_tokens]
        }  # fmt: skip

    def recalled(self, recorded: Any) -> Iterator[Piece | Answer]:
        read, said = recorded["used"]
        usage = Usage(read, said, 0.0, self.name)
        self._turn.spend(usage)
        if recorded["thought"]:
            yield Chunk(recorded["thought"], Channel.THINKING)
        if recorded["text"]:
            yield str(recorded["text"])
        yield Answer(recorded["text"], tuple(Called(*call) for call in recorded["calls"]), tokens=usage.tokens)

    def _request(self, dialogue: Dialogue, tools: Sequence[Tool], most: int, must_call: bool) -> dict[str, Any]:
        profile = self._turn.profile
        request = {**SAMPLING, "stream": True, "return_progress": True, "stream_options": {"include_usage": True}}
        messages = messages_of(dialogue, with_tools=self.takes_tools, in_words=self._in_words)
        request |= {"messages": messages, "max_tokens": most}
        if profile.temperature is not None:
            request["temperature"] = profile.temperature
        if tools and (must_call or not self._in_words):
            request |= choosing(tools, messages) if self._in_words else {"tools": offered(tools)}
            request["repeat_penalty"] = 1.0  # a call repeats what was said
        if must_call and not self._in_words:
            request["tool_choice"] = "required"
        return request
