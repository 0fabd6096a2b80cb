"""Messages of a request: the instructions, the earlier messages and the new one."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from roost.api.openai.requests import bad_request
from roost.core.talks.messages import Sender, Status
from roost.core.talks.transcripts import KIND, VERSION

_INSTRUCTING = ("system", "developer")
_SENDERS = {"user": Sender.USER, "assistant": Sender.AGENT}
_ROLES = "system, developer, user or assistant"


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
class ChatMessage:
    sender: Sender
    text: str
    files: tuple[ChatFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages of a request; the system messages are the instructions, and the last message is the new one."""

    instructions: str | None
    earlier: tuple[ChatMessage, ...]
    new: ChatMessage

    def transcript(self, title: str, temperature: float | None) -> str:
        """Return the earlier messages and the options as a transcript for `import_talk`."""
        now = datetime.now(UTC).isoformat()
        options = {"temperature": temperature, "instructions": self.instructions}
        talk = {
            "title": title,
            "profile": "",
            "agent": None,
            "busy": "interrupt",
            "options": {name: value for name, value in options.items() if value is not None},
            "created": now,
        }
        messages = [_line(message, now) for message in self.earlier]
        return json.dumps({"kind": KIND, "version": VERSION, "talk": talk, "messages": messages})


def _line(message: ChatMessage, now: str) -> dict[str, Any]:
    line = {"sender": message.sender, "text": message.text, "status": Status.COMPLETE, "created": now}
    files = [{"name": file.name, "data": file.encoded} for file in message.files]
    return line | {"attachments": files} if files else line


def read(messages: Sequence[dict[str, Any]]) -> Conversation:
    """Return the conversation in the messages of a request; raise 400 for a message that cannot be used."""
    instructions: list[str] = []
    said: list[ChatMessage] = []
    for number, message in enumerate(messages):
        where, role = f"messages[{number}]", message.get("role")
        if role in _INSTRUCTING:
            instructions.append(_content(message, where, Sender.AGENT).text)  # may be empty, and has no files
        elif isinstance(role, str) and role in _SENDERS:
            said.append(_content(message, where, _SENDERS[role]))
        else:
            hint = ": tools of clients are not supported" if role in ("tool", "function") else ""
            raise bad_request(f"`{where}.role` must be {_ROLES}{hint}", "messages")
    if not said or said[-1].sender is not Sender.USER:
        raise bad_request("the last of the `messages` must have the role user", "messages")
    *earlier, new = said
    return Conversation("\n\n".join(filter(None, instructions)) or None, tuple(earlier), new)


def _content(message: dict[str, Any], where: str, sender: Sender) -> ChatMessage:
    if message.get("tool_calls") or message.get("function_call"):
        raise bad_request(f"`{where}` calls a tool: tools of clients are not supported", "messages")
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
    return parts


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
