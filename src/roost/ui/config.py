"""Streamlit's options for the pages, independent of the server."""

from __future__ import annotations

from typing import Any

from roost.ui.design.tokens import theme

OPTIONS: dict[str, Any] = {
    # The default collects garbage after each run of a fragment: twenty polling tabs would block the server.
    "runner.postScriptGC": False,
    "runner.magicEnabled": False,
    # The default starts the next run of a page at once, beside the callbacks of the one before: both would change the
    # session state, and messages were lost or stored twice.
    "runner.fastReruns": False,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "server.headless": True,
    "server.fileWatcherType": "none",
    # Seconds for which the state of a disconnected tab is kept.
    "server.disconnectedSessionTTL": 120,
    "theme.baseRadius": "medium",
    "theme.showWidgetBorder": True,
    "theme.baseFontSize": 16,
    "theme.codeFontSize": "0.85rem",
    "theme.headingFontWeights": [600, 600, 600, 600, 600, 600],
    **theme(),
}
"""Options by Streamlit's names. All fonts are Streamlit's own: nothing is fetched from other hosts."""
