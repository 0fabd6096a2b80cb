"""Messages of a request: the instructions, the earlier messages and the new one."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from roost.api.openai.requests import bad_request
from roost.core.talks.messages import Sender, Status
from roost.core.talks.side_channels import Channel, answered, called
from roost.core.talks.transcripts import KIND, VERSION

_INSTRUCTING = ("system", "developer")
_SENDERS = {"user": Sender.USER, "assistant": Sender.AGENT}
_ROLES = "system, developer, user, assistant or tool"


@dataclass(frozen=True, slots=True)
class ChatFile:
    """File in a message; `encoded` is Base64."""

    name: str
    encoded: str
    param: str

    def data(self) -> bytes:
        try:
            return b64decode(self.encoded, validate=True)
        except (NotBase64, ValueError):
            raise bad_request(f"`{self.param}` must be a data URL in Base64", "messages") from None


@dataclass(frozen=True, slots=True)
class ChatCall:
    """Call of a tool that the client has run."""

    call_id: str
    tool: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class ChatMessage:
    sender: Sender
    text: str
    files: tuple[ChatFile, ...] = ()
    calls: tuple[ChatCall, ...] = ()
    """Calls with which an answer has ended; the next message has their results."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages of a request; the system messages are the instructions, and the last message is the new one."""

    instructions: str | None
    earlier: tuple[ChatMessage, ...]
    new: ChatMessage

    def transcript(self, title: str, options: Mapping[str, Any]) -> str:
        """Return the earlier messages and the options as a transcript for `import_talk`."""
        now = datetime.now(UTC).isoformat()
        talk = {
            "title": title,
            "profile": "",
            "agent": None,
            "busy": "interrupt",
            "options": dict(options),
            "created": now,
        }
        messages = [_line(message, now) for message in self.earlier]
        return json.dumps({"kind": KIND, "version": VERSION, "talk": talk, "messages": messages})


def _line(message: ChatMessage, now: str) -> dict[str, Any]:
    line: dict[str, Any] = {"sender": message.sender, "text": message.text, "status": Status.COMPLETE, "created": now}
    files = [{"name": file.name, "data": file.encoded} for file in message.files]
    if calls := "".join(called(call.call_id, call.tool, call.arguments) for call in message.calls):
        line["notes"] = [{"channel": Channel.TOOLS, "text": calls}]
    return line | {"attachments": files} if files else line


def read(messages: Sequence[dict[str, Any]]) -> Conversation:
    """Return the conversation in the messages of a request; raise 400 for a message that cannot be used."""
    instructions: list[str] = []
    said: list[ChatMessage] = []
    results: dict[int, dict[str, str]] = {}
    """Results of calls, by the number of messages before them."""
    for number, message in enumerate(messages):
        where, role = f"messages[{number}]", message.get("role")
        if role in _INSTRUCTING:
            instructions.append(_content(message, where, Sender.AGENT).text)  # may be empty, and has no files
        elif isinstance(role, str) and role in _SENDERS:
            said.append(_content(message, where, _SENDERS[role]))
        elif role == "tool":
            results.setdefault(len(said), {})[_call_id(message, where)] = _content(message, where, Sender.AGENT).text
        else:
            raise bad_request(f"`{where}.role` must be {_ROLES}", "messages")
    said = _with_results(said, results)
    if not said or said[-1].sender is not Sender.USER:
        raise bad_request("the last of the `messages` must have the role user or tool", "messages")
    *earlier, new = said
    return Conversation("\n\n".join(filter(None, instructions)) or None, tuple(earlier), new)


def _with_results(said: Sequence[ChatMessage], results: Mapping[int, Mapping[str, str]]) -> list[ChatMessage]:
    """Return the messages with the results of calls, which follow the answer that has ended with these calls."""
    found: list[ChatMessage] = []
    for number, message in enumerate([None, *said]):
        if message is not None:
            found.append(message)
        given = results.get(number, {})
        calls = message.calls if message is not None else ()
        if given.keys() != {call.call_id for call in calls}:
            raise bad_request("each call in `tool_calls` needs one message with the role tool after it", "messages")
        if calls:
            lines = "".join(answered(call.call_id, given[call.call_id]) for call in calls)
            found.append(ChatMessage(Sender.USER, lines))
    return found


def _call_id(message: dict[str, Any], where: str) -> str:
    return _text(message.get("tool_call_id"), f"{where}.tool_call_id")


def _calls(message: dict[str, Any], where: str) -> Iterator[ChatCall]:
    given = message.get("tool_calls") or []
    if not isinstance(given, list):
        raise bad_request(f"`{where}.tool_calls` must be a list", "messages")
    for number, call in enumerate(given):
        at = f"{where}.tool_calls[{number}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise bad_request(f"`{at}` must call a function", "messages")
        arguments = _text(function.get("arguments"), f"{at}.function.arguments")
        name = _text(function.get("name"), f"{at}.function.name")
        yield ChatCall(_text(call.get("id"), f"{at}.id"), name, _parsed(arguments))


def _parsed(arguments: str) -> Any:
    """Return the arguments of a call; the text itself if it is no JSON."""
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def _content(message: dict[str, Any], where: str, sender: Sender) -> ChatMessage:
    if message.get("function_call"):
        raise bad_request(f"`{where}.function_call` is not supported: use `tool_calls`", "messages")
    content = message.get("content")
    if content is None and sender is Sender.AGENT:
        content = ""
    if isinstance(content, str):
        parts = ChatMessage(sender, content)
    elif isinstance(content, list):
        parts = _joined(content, f"{where}.content", sender)
    else:
        raise bad_request(f"`{where}.content` must be a text or a list of parts", "messages")
    if not parts.text and not parts.files and sender is Sender.USER:
        raise bad_request(f"`{where}.content` must not be empty", "messages")
    return replace(parts, calls=tuple(_calls(message, where)))


def _joined(parts: Sequence[Any], where: str, sender: Sender) -> ChatMessage:
    texts: list[str] = []
    files: list[ChatFile] = []
    for number, part in enumerate(parts):
        at = f"{where}[{number}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("text", "refusal"):
            texts.append(_text(part.get(kind), f"{at}.{kind}"))
        elif kind == "image_url" and sender is Sender.USER:
            files.append(_file(_inside(part, "image_url", "url", at), f"image-{len(files) + 1}", f"{at}.image_url.url"))
        elif kind == "file" and sender is Sender.USER:
            name = part["file"].get("filename") if isinstance(part.get("file"), dict) else None
            given = name if isinstance(name, str) and name else f"file-{len(files) + 1}"
            files.append(_file(_inside(part, "file", "file_data", at), given, f"{at}.file.file_data"))
        else:
            raise bad_request(f"`{at}.type` must be text, or in a user's message image_url or file", "messages")
    return ChatMessage(sender, "\n".join(texts), tuple(files))


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise bad_request(f"`{where}` must be a text", "messages")
    return value


def _inside(part: dict[str, Any], outer: str, inner: str, where: str) -> str:
    held = part.get(outer)
    return _text(held.get(inner) if isinstance(held, dict) else None, f"{where}.{outer}.{inner}")


def _file(url: str, name: str, where: str) -> ChatFile:
    head, _, encoded = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        raise bad_request(f"`{where}` must be a data URL in Base64: Roost fetches no files from elsewhere", "messages")
    kind = head.removeprefix("data:").partition(";")[0].rpartition("/")[2]
    is_named = "." in name or not kind.isalnum()
    return ChatFile(name if is_named else f"{name}.{kind:.20}", encoded, where)
