"""Records: immutable dataclasses that are cheap to create."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen: bool, **options: Any) -> Any:
        """Return a dataclass decorator. Frozen for type checkers only: that makes creation three times as fast."""
        return dataclass(unsafe_hash=frozen, **options)


__all__ = ["record"]
