"""Example bodies of requests, for OpenAPI and the page of the API."""

from __future__ import annotations

import json
from typing import Any

from roost.protocol.namespaces import Method

_TRANSCRIPT = {
    "kind": "roost.talk",
    "version": 1,
    "talk": {
        "title": "From elsewhere",
        "profile": "guide",
        "agent": None,
        "busy": "interrupt",
        "options": {},
        "created": "2030-01-01T09:00:00Z",
    },
    "messages": [{"sender": "user", "text": "hello", "status": "complete", "created": "2030-01-01T09:00:00Z"}],
}
_EXAMPLES: dict[str, dict[str, Any]] = {
    "talks.create_talk_session": {"profile": "guide", "title": "First steps"},
    "talks.add_message": {"content": "What is Roost?"},
    "talks.configure": {"title": "About Roost", "busy": "queue"},
    "talks.edit_message": {"seq": 1, "content": "What can Roost do?"},
    "talks.import_talk": {"text": json.dumps(_TRANSCRIPT)},
    "talks.search": {"query": "sleep wake", "limit": 10},
    "agents.create": {"agentId": "dispatcher", "config": {"maxConcurrentTasks": 5, "wakeOnPriority": "high"}},
    "agents.create_many": {"agentIds": ["worker-1", "worker-2"]},
    "agents.configure": {"config": {"description": "Watches the systems"}},
    "agents.broadcast": {"text": "The build is green"},
    "agents.find": {"text": "dispatch"},
    "agents.sleep": {"until": "2030-01-01T09:00:00Z", "wakeOn": {"any": [{"event": "alerts.*"}, {"mail": "high"}]}},
    "agents.remember": {"text": "The deploy key is in the vault", "key": "deploy-key"},
    "agents.forget": {"key": "deploy-key"},
    "agents.set_state": {"state": {"count": 3}},
    "tasks.send": {"to": "agent:dispatcher", "prompt": "Check the systems and report issues"},
    "schedules.create": {"agent": "dispatcher", "prompt": "Check the systems", "cron": "*/15 * * * *"},
    "schedules.change": {"cron": "0 9 * * *", "zone": "Europe/Berlin"},
    "sleep_scheduler.schedule_wake": {"time": "2030-01-01T09:00:00Z"},
    "mail.send": {"to": "agent:dispatcher", "subject": "Disk", "body": "The disk is almost full.", "priority": "high"},
    "mail.import_mail": {
        "mailId": "mail_019bd8a3f0000000000000001",
        "sender": "agent:dispatcher",
        "subject": "Disk",
        "body": "The disk is almost full.",
        "created": "2026-01-01T09:00:00Z",
    },
    "events.publish": {"name": "alerts.disk", "data": {"free": 0.03}},
    "meetings.call": {"topic": "Plan the week", "required": ["agent:dispatcher"]},
    "meetings.say": {"text": "Let us begin."},
    "meetings.move": {"move": {"cell": 4}},
    "meetings.kick": {"who": "agent:dispatcher", "reason": "off topic"},
    "approvals.answer": {"result": "Use the second account"},
    "hooks.create": {"event": "github.push", "name": "github", "headers": ["x-github-event"]},
    "webhooks.create": {"url": "https://example.com/roost", "events": ["Task*", "LetterDied"], "name": "ci"},
    "tokens.create": {"name": "ci", "scopes": ["agents:read", "tasks"], "expiresIn": 2_592_000},
    "users.add": {"name": "ann", "role": "user"},
    "users.set_role": {"role": "admin"},
    "approvals.revoke": {"tool": "deploy", "agentId": "dispatcher"},
}
_NAMED = {"to": "agent:dispatcher", "who": "agent:dispatcher", "body": "Thank you."}
"""Example values of arguments by their names, for methods without a declared example."""
_VALUES: dict[str, Any] = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}


def example_of(method: Method) -> dict[str, Any] | None:
    """Return an example of a body: the declared one, or one with the required fields; None if there is none."""
    if not method.route.has_body or method.full_name in _EXAMPLES:
        return _EXAMPLES.get(method.full_name)
    schema = method.takes.model_json_schema()
    required = schema.get("required", ())
    kinds = {name: schema["properties"][name].get("type") for name in required}
    return {name: _NAMED.get(name) or _VALUES.get(kind, name) for name, kind in kinds.items()} or None
