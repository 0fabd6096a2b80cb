"""Labels of the kinds of work: of envelopes, runs, dead letters and figures."""

from __future__ import annotations

LABELS = {
    "talk": "Talk",
    "task": "Task",
    "mail": "Mail",
    "event": "Event",
    "meeting": "Meeting",
    "message": "Message",
    "answer": "Late answer",
    "outgoing": "Not sent",
    "webhook": "Webhook",
}
UNCOUNTED = ("Mail", "Not sent")
PLURALS = {name: label if label in UNCOUNTED else f"{label}s" for name, label in LABELS.items()}


def label(kind: str) -> str:
    """Return the label; a newer program may store other kinds."""
    return LABELS.get(kind, kind.capitalize())
