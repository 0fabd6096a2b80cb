"""Records: dataclasses that nobody changes, made by the ten thousand each second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen: bool, **options: Any) -> Any:
        """Frozen to whoever checks the types, and not while the program runs: making one takes a third of the time."""
        return dataclass(unsafe_hash=frozen, **options)


__all__ = ["record"]
