"""Streamlit's options for the pages, independent of the server."""

from __future__ import annotations

from typing import Any

_LIGHT = {
    "primaryColor": "#1F6F64",
    "backgroundColor": "#FFFFFF",
    "secondaryBackgroundColor": "#F3F4F1",
    "textColor": "#1E2422",
    "linkColor": "#17665B",
    "borderColor": "#DCDFDA",
    "codeBackgroundColor": "#F6F7F4",
}
_DARK = {
    "primaryColor": "#2F8F80",
    "backgroundColor": "#16191A",
    "secondaryBackgroundColor": "#212627",
    "textColor": "#E6E9E7",
    "linkColor": "#7CCBBD",
    "borderColor": "#363D3D",
    "codeBackgroundColor": "#1D2223",
}

OPTIONS: dict[str, Any] = {
    # The default collects garbage after each run of a fragment: twenty polling tabs would block the server.
    "runner.postScriptGC": False,
    "runner.magicEnabled": False,
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
    **{f"theme.light.{name}": value for name, value in _LIGHT.items()},
    **{f"theme.dark.{name}": value for name, value in _DARK.items()},
}
"""Options by Streamlit's names. All fonts are Streamlit's own: nothing is fetched from other hosts."""
