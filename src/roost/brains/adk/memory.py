"""Memory service of the ADK over the notes that a Roost agent remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from roost.ports import Turn


class StoredMemory(BaseMemoryService):
    """Memory of one turn. Without a Roost agent nothing is remembered beyond the talk."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    async def search_memory(self, *, app_name: str, user_id: str, query: str, **more: Any) -> SearchMemoryResponse:
        if self._turn.agent_id is None:
            return SearchMemoryResponse()
        return SearchMemoryResponse(
            memories=[
                MemoryEntry(id=memory.key, content=_content(memory.text), timestamp=memory.created.isoformat())
                for memory in await self._turn.recall(query)
            ]
        )

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        for memory in memories if self._turn.agent_id is not None else ():
            text = "\n".join(part.text for part in memory.content.parts or [] if part.text)
            if text:
                await self._turn.remember(text, key=memory.id)

    async def add_session_to_memory(self, session: Session) -> None:
        """Do nothing: the talk is stored anyway."""


def _content(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])
