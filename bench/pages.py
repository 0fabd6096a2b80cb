"""Pages: what idle tabs cost."""

from __future__ import annotations
