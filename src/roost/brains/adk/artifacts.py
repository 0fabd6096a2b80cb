"""Artifact service of the ADK in Roost's store."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService, ensure_part
from google.genai import types
from pydantic_core import from_json, to_json

from roost.core.brain_data.artifacts import Artifact
from roost.core.brain_data.brain_context import Scope
from roost.ports import Turn

_USER = "user:"
"""Prefix of artifacts that belong to the user instead of the session."""


class StoredArtifacts(BaseArtifactService):
    """Artifacts of one turn's talk or lane, and of its user."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._files = turn.brain_context.artifacts

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        if self._turn.stopping:  # the turn is stopping: its effects are discarded
            raise asyncio.CancelledError
        part = ensure_part(artifact)
        mime = part.inline_data.mime_type if part.inline_data else None
        about = to_json({"mime_type": mime, "custom_metadata": custom_metadata or {}}, fallback=str).decode()
        content = part.model_dump_json(exclude_none=True, by_alias=True)
        return await self._files.save(app_name, *_place(filename, session_id), content, about)

    async def load_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None, version: int | None = None
    ) -> types.Part | None:
        found = await self._files.load(app_name, *_place(filename, session_id), version)
        return None if found is None else types.Part.model_validate_json(found.content)

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        own = await self._files.names(app_name, Scope.OWN) if session_id is not None else []
        return sorted([*own, *(_USER + name for name in await self._files.names(app_name, Scope.USER))])

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        await self._files.remove(app_name, *_place(filename, session_id))

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        return [artifact.version for artifact in await self._files.versions(app_name, *_place(filename, session_id))]

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        found = await self._files.versions(app_name, *_place(filename, session_id))
        return [_described(artifact, filename) for artifact in found]

    async def get_artifact_version(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None, version: int | None = None
    ) -> ArtifactVersion | None:
        found = await self._files.versions(app_name, *_place(filename, session_id))
        chosen = [artifact for artifact in found if version is None or artifact.version == version]
        return _described(chosen[-1], filename) if chosen else None


def _place(filename: str, session_id: str | None) -> tuple[Scope, str]:
    if filename.startswith(_USER) or session_id is None:
        return Scope.USER, filename.removeprefix(_USER)
    return Scope.OWN, filename


def _described(artifact: Artifact, filename: str) -> ArtifactVersion:
    about = from_json(artifact.about)
    return ArtifactVersion(
        version=artifact.version,
        canonical_uri=f"roost://artifacts/{filename}/{artifact.version}",
        create_time=artifact.created,
        **about,
    )
