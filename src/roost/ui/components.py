"""Components of pages: messages, the progress indicator, notices, and the start of an empty talk."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from html import escape
from pathlib import Path
from zlib import crc32
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from roost.core.journal.approvals import folded
from roost.core.talks.messages import Message, Sender, Status
from roost.core.talks.side_channels import LEFT_OUT, Channel, Note, Notes, calls, waited_for
from roost.core.talks.talk import Talk
from roost.ports import Profile
from roost.ui.text import as_sentence, defused, plain, sentence, verbatim

STYLE = Path(__file__).with_name("style.css")
SCRIPT = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
SHOWN = 1_000
"""Characters shown of a tool's result."""
SUGGESTIONS = {
    "gguf": ("What can you do?", "Tell me a story about the sea", "Write a poem about rain"),
    "guide": ("What is Roost?", "Count, so that I can interrupt you", "Show me markdown", "Fail, please"),
}
ASKING = "Waiting for your approval…"
_TYPED = {"Count, so that I can interrupt you": "count", "Show me markdown": "markdown", "Fail, please": "fail"}


def set_up() -> None:
    st.set_page_config(page_title="Roost", page_icon=str(STYLE.with_name("icon.png")), layout="centered")
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


def message(message: Message, body: Callable[[], None]) -> None:
    """Draw one message of a talk; `body` draws its content.

    A message has the same elements while it is written (the body is then a fragment with its own container) and
    afterwards, so that nothing moves at its end.
    """
    with st.chat_message("user" if message.sender is Sender.USER else "assistant"):
        body()


def finished(message: Message, details: str | None = None) -> None:
    with st.container():
        content(message, details=details)


def content(message: Message, *, is_asking: bool = False, details: str | None = None) -> None:
    """Draw the text and state of a message: of users exactly as typed, of agents as Markdown.

    `details` are for the author of the brain, collapsed below the sentence about a failure.
    """
    if message.sender is Sender.USER:
        st.text(verbatim(message.content))
    elif message.notes:
        _beside(message.notes)
    if message.sender is Sender.AGENT and message.content:
        st.markdown(defused(message.content), anchors=False)
    if message.status is Status.FAILED:
        st.error(as_sentence(message.error or "The answer could not be completed."))
        if details:
            with st.expander("Details"):
                st.code(details, language=None, wrap_lines=True)
    st.html(f'<div class="roost-foot"><span>{_footing(message, is_asking)}</span>{_copying(message)}</div>')


def _beside(all_notes: Notes) -> None:
    """Draw thoughts and steps of the answer, collapsed."""
    notes = [note for note in all_notes if note.channel != Channel.WAITING]
    if not notes:
        return
    if summary := next((note.text for note in notes if note.channel == Channel.SUMMARY), None):
        done = "omitted" if LEFT_OUT in summary.partition("\n")[0] else "summarized"
        st.caption(f"Earlier messages were {done} here to fit the model's context window.")
    with st.expander("Thoughts and steps"):
        for note in notes:
            if note.channel == Channel.TOOLS:
                st.text(verbatim(_steps(note)))
            else:
                st.markdown(defused(note.text), anchors=False)


def _steps(note: Note) -> str:
    """Return tool calls, one per line, with their results."""
    lines = []
    for call in calls(note.text):
        given = json.dumps(call.arguments, ensure_ascii=False)
        result = "…" if call.result is None else call.result
        lines.append(f"{call.tool} {given}\n{'→' if call.ok else '✗'} {folded(result, SHOWN)}")
    return "\n".join(lines)


def _copying(message: Message) -> str:
    """Return a button that copies the exact text; `page.js` handles it.

    The text is base64, which needs no escaping in HTML.
    """
    if message.status is Status.STREAMING or not message.content:
        return ""
    said = b64encode(message.content.encode()).decode()
    return f'<button type="button" aria-live="polite" data-copy="{said}">Copy</button>'


def waiting(*, is_asking: bool) -> None:
    """Draw the indicator between the question and the first word of the answer."""
    with st.container(key="waiting"):
        st.caption(ASKING if is_asking else "Thinking…")


def _footing(message: Message, is_asking: bool = False) -> str:
    if message.status is Status.STREAMING and is_asking:
        return ASKING
    if message.status is Status.STREAMING:
        return escape((not message.content and waited_for(message.notes)) or "Writing…")
    when = moment(message.created)
    return f"Interrupted · {when}" if message.status is Status.INTERRUPTED else when


def moment(time: datetime) -> str:
    """Format a time in the browser's time zone: the time of day, and the date unless it is today."""
    try:
        zone = ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        zone = ZoneInfo("UTC")
    local, now = time.astimezone(zone), datetime.now(zone)
    if local.date() == now.date():
        return f"{local:%H:%M}"
    if now - local < timedelta(days=300):
        return f"{local.day} {local:%B, %H:%M}"
    return f"{local.day} {local:%B %Y, %H:%M}"


def invitation(
    profiles: Sequence[Profile], chosen: str, choose: Callable[[], None], say: Callable[[str], None]
) -> None:
    """Draw an empty talk: the choice of the agent, and suggestions."""
    with st.container(key="invitation"):
        st.subheader("What would you like to talk about?", anchor=False)
        names = {profile.name: profile.shown for profile in profiles}
        at = [*names].index(chosen)
        st.selectbox("Agent", names, index=at, key="profile", on_change=choose, format_func=names.__getitem__)
        profile = profiles[at]
        about = [profile.description, f"Model: {profile.model}." if profile.model else ""]
        st.caption(plain(" ".join(filter(None, about))) or "Type a message below and press Enter.")
        with st.container(key="suggestions", horizontal=True):
            for suggestion in SUGGESTIONS.get(profile.name, ()):
                typed = _TYPED.get(suggestion, suggestion)
                st.button(suggestion, key=f"suggest_{typed}", on_click=say, args=(typed,))
