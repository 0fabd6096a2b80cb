"""Routes under /v1 that existing clients of OpenAI's API use."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Query, Request
from starlette.responses import Response

from roost.api.limits.bodies import BodyRoute
from roost.api.openai.completions import Completions
from roost.api.openai.models import MOST_MODELS, ChatModels
from roost.api.openai.requests import ChatRequest
from roost.api.routes.dependencies import TalkReader, TalkWriter
from roost.core.limits.limits import Limits
from roost.protocol.openai import PREFIX
from roost.service import AsyncAgentService

_ERROR = {
    "type": "object",
    "properties": {
        "message": {"type": "string"},
        "type": {"type": "string"},
        "param": {"type": ["string", "null"]},
        "code": {"type": ["string", "null"]},
    },
}
_FORM = {"type": "object", "properties": {"error": _ERROR}, "required": ["error"]}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": HTTPStatus(status).phrase, "content": {"application/json": {"schema": _FORM}}}
    for status in (400, 401, 403, 404, 409, 413, 422, 429, 503)
}
"""Errors in the form of OpenAI's API."""
_ANSWERS: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}, "text/event-stream": {}}


def add(app: FastAPI, service: AsyncAgentService, limits: Limits) -> None:
    api = APIRouter(prefix=PREFIX, route_class=BodyRoute, tags=["openai"], responses=ERRORS)
    _add_completions(api, Completions(service, limits))
    _add_models(api, ChatModels(service))
    app.include_router(api)


def _add_completions(api: APIRouter, completions: Completions) -> None:
    @api.post("/chat/completions", response_class=Response, responses={200: {"content": _ANSWERS}})
    async def create_chat_completion(
        request: Request, user: TalkWriter, body: ChatRequest, roost_talk: Annotated[str | None, Header()] = None
    ) -> Any:
        """Answer a conversation: `messages`, or the last of them in the talk that the header `Roost-Talk` names."""
        answer = completions.stream if body.stream else completions.complete
        return await answer(request, user, body, roost_talk)


def _add_models(api: APIRouter, models: ChatModels) -> None:
    @api.get("/models")
    async def list_models(
        user: TalkReader,
        limit: Annotated[int, Query(ge=1, le=MOST_MODELS)] = MOST_MODELS,
        after: str | None = None,
    ) -> dict[str, Any]:
        """Return the models: each profile by its name, and each agent of the user as `agent:NAME`."""
        return await models.list(user, limit, after)

    @api.get("/models/{model_id:path}")
    async def get_model(user: TalkReader, model_id: str) -> dict[str, Any]:
        """Return one model."""
        return await models.get(user, model_id)
