"""Context of everything that is sent: its owner, its sender, and its place in a chain of messages."""

from __future__ import annotations

from roost.core.values.records import record


@record(frozen=True, slots=True)
class SenderContext:
    """`user_id` is the owner of what is sent, `address` the user or the agent that sends it."""

    user_id: str
    address: str
    hops: int = 0
    root: str = ""
    """Id of the origin of the chain; empty for its first link."""

    @classmethod
    def of_user(cls, user_id: str) -> SenderContext:
        return cls(user_id, f"user:{user_id}")
