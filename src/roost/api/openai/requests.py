"""Requests of chat completions: the fields that Roost reads, and those that it refuses."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, Field

from roost.api.error_responses import HttpError

MOST_MESSAGES = 2_048
TALK_HEADER = "Roost-Talk"
"""Header of requests and responses: the talk that a request continues, or `new`."""
TALK_FIELD = "roost_talk"
"""The same in `metadata` of a request, and in a response."""
NEW = "new"

WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "audio": (),
    "modalities": (["text"],),
    "response_format": ({"type": "text"},),
    "stop": ([], ""),
    "web_search_options": (),
}
"""Fields that are not supported, with the values that ask for nothing."""
_INSTEAD = {
    "functions": "send them as `tools`",
    "n": "send several requests",
    "response_format": "describe the format in the messages",
}


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """Request of a chat completion. Unknown fields are ignored, as by other compatible servers."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    model: str
    messages: Annotated[list[dict[str, Any]], FailFast()] = Field(min_length=1, max_length=MOST_MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    metadata: dict[str, Any] | None = None
    n: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    tools: Any = None
    tool_choice: Any = None
    functions: Any = None
    function_call: Any = None
    audio: Any = None
    modalities: Any = None
    response_format: Any = None
    stop: Any = None
    web_search_options: Any = None

    @property
    def includes_usage(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    def check(self) -> None:
        """Raise 400 for a field that asks for something that is not supported."""
        for name, harmless in WITHOUT_EFFECT.items():
            value = getattr(self, name)
            if value is not None and value not in harmless:
                instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
                raise bad_request(f"`{name}` is not supported{instead}", name, "unsupported_parameter")

    def talk(self, header: str | None) -> str | None:
        """Return the talk that the header or the metadata names, `new`, or None."""
        field = (self.metadata or {}).get(TALK_FIELD)
        if field is not None and not isinstance(field, str):
            raise bad_request(f"`{TALK_FIELD}` must be the id of a talk, or `{NEW}`", "metadata")
        if header and field and header != field:
            raise bad_request(f"the header {TALK_HEADER} and `metadata` name different talks", "metadata")
        return header or field or None


def bad_request(message: str, param: str, code: str = "invalid") -> HttpError:
    return HttpError(400, code, message, param=param)
