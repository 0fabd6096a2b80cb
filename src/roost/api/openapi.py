"""OpenAPI description of the API: FastAPI's own, with errors, sign-in and the order of its parts."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from roost.api.auth import COOKIE
from roost.protocol.errors import Problem

TAGS = {
    "talks": "Conversations of a user with a profile or an agent.",
    "agents": "Agents of the user: their lives, settings, memories and state.",
    "tasks": "Work that is given to an agent.",
    "schedules": "Tasks at certain times.",
    "sleep_scheduler": "The next time at which an agent wakes.",
    "mail": "Mail of the user and of the user's agents.",
    "events": "Published events, which agents subscribe to.",
    "meetings": "Meetings of agents and users, and games.",
    "dead_letters": "What could not be delivered or done.",
    "approvals": "Questions of agents to their users.",
    "runs": "What brains did: every run with its journal, and replays.",
    "monitor": "What happens, in order, and the state of all agents.",
    "tokens": "API tokens of the user.",
    "users": "Accounts and the audit list, for admins.",
    "webhooks": "Facts that are posted to URLs.",
    "hooks": "URLs to which other programs post events and tasks.",
    "nodes": "Nodes of the cluster, for admins.",
    "openai": "For clients of OpenAI's API.",
    "server": "Files of messages, profiles, health and metrics.",
}
OPEN = ("/healthz", "/readyz", "/metrics")
"""Paths that need no sign-in."""
_SIGN_IN = {
    "token": {"type": "http", "scheme": "bearer", "description": "API token."},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "Cookie of a browser; its name has a suffix.",
    },
}


def set_up(app: FastAPI) -> None:
    """Complete the description when it is first read."""
    described = app.openapi

    def completed() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = described()
            schema["tags"] = [{"name": name, "description": about} for name, about in TAGS.items()]
            components = schema.setdefault("components", {})
            components.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
            components["securitySchemes"] = _SIGN_IN
            schema["security"] = [{name: []} for name in _SIGN_IN]
            for path, operations in schema["paths"].items():
                for operation in operations.values():
                    operation.setdefault("tags", ["server"])
                    if path in OPEN:
                        operation["security"] = []
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = completed  # type: ignore[method-assign]
