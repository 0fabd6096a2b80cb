"""Markdown as safe HTML."""

from __future__ import annotations

from roost.ui.rendering.blocks import Blocks


def render(source: str) -> str:
    """Return a whole answer as HTML. It holds no script, no style and no address that a browser loads by itself."""
    return "".join(block.html for block in Blocks().update(source))
