"""Components of pages: titles, notices and times."""

from __future__ import annotations

from datetime import datetime, timedelta
from html import escape
from pathlib import Path
from typing import Literal
from zlib import crc32
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from roost.core.talks.talk import Talk
from roost.ui.design.tokens import css
from roost.ui.text import plain, sentence

STYLE = Path(__file__).parents[1] / "style.css"
SCRIPT = STYLE.with_name("page.js").read_text(encoding="utf-8")


def set_up(*, is_wide: bool = False) -> None:
    layout: Literal["wide", "centered"] = "wide" if is_wide else "centered"
    st.set_page_config(page_title="Roost", page_icon=str(STYLE.with_name("icon.png")), layout=layout)
    st.html(f"<style>{css()}</style>")
    st.html(STYLE)


def behaviour(place: str) -> None:
    """Add the script for focus and copying, which only the browser can do. It runs again when `place` changes."""
    st.html(f"<script>/* {crc32(place.encode())} */{SCRIPT}</script>", unsafe_allow_javascript=True)


def title(talk: Talk) -> str:
    """Return the title of a talk, escaped for Streamlit's Markdown."""
    return plain(talk.title or "New talk")


def notice(words: object) -> None:
    """Draw one sentence that screen readers announce at once, which they do not with Streamlit's own boxes."""
    st.html(f'<div class="roost-notice" role="alert">{escape(sentence(words))}</div>')


def browser_zone() -> ZoneInfo:
    """Return the time zone of the browser, or UTC if it is not known."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def period(time: datetime) -> str:
    """Return the heading under which a time is listed: a day, a week or a month."""
    zone = browser_zone()
    local, today = time.astimezone(zone), datetime.now(zone).date()
    days = (today - local.date()).days
    if days < 2:
        return "Yesterday" if days == 1 else "Today"
    if days < 30:
        return "Previous 7 days" if days < 8 else "Previous 30 days"
    return f"{local:%B}" if local.year == today.year else f"{local:%B %Y}"


def moment(time: datetime) -> str:
    """Format a time in the browser's time zone: the time of day, and the date unless it is today."""
    zone = browser_zone()
    local, now = time.astimezone(zone), datetime.now(zone)
    if local.date() == now.date():
        return f"{local:%H:%M}"
    if now - local < timedelta(days=300):
        return f"{local.day} {local:%B, %H:%M}"
    return f"{local.day} {local:%B %Y, %H:%M}"
