"""What pages are made of: a message, the mark that one is being written, notices, the invitation to begin."""

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

from roost.core.messages import Message, Sender, Status
from roost.core.notes import LEFT_OUT, Channel, Note, Notes, calls, waited_for
from roost.core.talks import Talk
from roost.ports import Profile
from roost.ui.text import defused, plain, sentence, told, verbatim

STYLE = Path(__file__).with_name("style.css")
SCRIPT = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
SHOWN = 1_000
"""Characters of a tool's result that are shown."""
SUGGESTIONS = {
    "gguf": ("What can you do?", "Tell me a story about the sea", "Write a poem about rain"),
    "guide": ("What is Roost?", "Count, so that I can interrupt you", "Show me markdown", "Fail, please"),
}
ASKING = "Waits for your word …"
_TYPED = {"Count, so that I can interrupt you": "count", "Show me markdown": "markdown", "Fail, please": "fail"}


def set_up() -> None:
    st.set_page_config(page_title="Roost", page_icon=str(STYLE.with_name("icon.png")), layout="centered")
    st.html(STYLE)


def behaviour(place: str) -> None:
    """What only the browser can do: focus in the line to type in, copying. Runs anew when the place changes."""
    st.html(f"<script>/* {crc32(place.encode())} */{SCRIPT}</script>", unsafe_allow_javascript=True)


def title(talk: Talk) -> str:
    """The title of a talk, for a place where Streamlit renders Markdown."""
    return plain(talk.title or "New talk")


def notice(words: object) -> None:
    """One sentence that screen readers tell as soon as it is there, which they don't with Streamlit's own boxes."""
    st.html(f'<div class="roost-notice" role="alert">{escape(sentence(words))}</div>')


def message(message: Message, body: Callable[[], None]) -> None:
    """One message of a talk; `body` draws what is in it.

    A message has the same elements at the same places whether it is being written (the body is then
    a fragment, which has a container of its own) or finished: so nothing moves when it ends.
    """
    with st.chat_message("user" if message.sender is Sender.USER else "assistant"):
        body()


def finished(message: Message) -> None:
    with st.container():
        content(message)


def content(message: Message, *, is_asking: bool = False) -> None:
    """What was said, and how it stands: people's words exactly as they typed them, agents' as Markdown."""
    if message.sender is Sender.USER:
        st.text(verbatim(message.content))
    elif message.notes:
        _beside(message.notes)
    if message.sender is Sender.AGENT and message.content:
        st.markdown(defused(message.content), anchors=False)
    if message.status is Status.FAILED:
        st.error(told(message.error or "The answer could not be finished."))
    st.html(f'<div class="roost-foot"><span>{_footing(message, is_asking)}</span>{_copying(message)}</div>')


def _beside(all_notes: Notes) -> None:
    """What was thought and done on the way to the answer, folded."""
    notes = [note for note in all_notes if note.channel != Channel.WAITING]
    if not notes:
        return
    if summary := next((note.text for note in notes if note.channel == Channel.SUMMARY), None):
        done = "left out" if LEFT_OUT in summary.partition("\n")[0] else "summed up"
        st.caption(f"What was said before was {done} here, so that the rest fits into what the model can read.")
    with st.expander("Thoughts and steps"):
        for note in notes:
            if note.channel == Channel.TOOLS:
                st.text(verbatim(_steps(note)))
            else:
                st.markdown(defused(note.text), anchors=False)


def _steps(note: Note) -> str:
    """Calls of tools, a line each, and what came of them."""
    told = []
    for call in calls(note.text):
        given = json.dumps(call.arguments, ensure_ascii=False)
        result = "…" if call.result is None else call.result
        told.append(f"{call.tool} {given}\n{'→' if call.ok else '✗'} {result[:SHOWN]}")
    return "\n".join(told)


def _copying(message: Message) -> str:
    """A button that copies what was said, to the letter; `page.js` does it.

    The text is in letters and digits that mean nothing in HTML.
    """
    if message.status is Status.STREAMING or not message.content:
        return ""
    said = b64encode(message.content.encode()).decode()
    return f'<button type="button" aria-live="polite" data-copy="{said}">Copy</button>'


def waiting(*, is_asking: bool) -> None:
    """Shown from the question to the first word of the answer."""
    with st.container(key="waiting"):
        st.caption(ASKING if is_asking else "Thinking …")


def _footing(message: Message, is_asking: bool = False) -> str:
    if message.status is Status.STREAMING and is_asking:
        return ASKING
    if message.status is Status.STREAMING:
        return escape((not message.content and waited_for(message.notes)) or "Writing …")
    when = moment(message.created)
    return f"Interrupted · {when}" if message.status is Status.INTERRUPTED else when


def moment(time: datetime) -> str:
    """A time as people near this browser write it: the hour, and the day unless it is today."""
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
    """An empty talk: who answers, and what one might say."""
    with st.container(key="invitation"):
        st.subheader("What would you like to talk about?", anchor=False)
        names = {profile.name: profile.shown for profile in profiles}
        at = [*names].index(chosen)
        st.selectbox(
            "Who answers", names, index=at, key="profile", on_change=choose, format_func=names.__getitem__
        )  # fmt: skip
        profile = profiles[at]
        about = [profile.description, f"Model: {profile.model}." if profile.model else ""]
        st.caption(plain(" ".join(filter(None, about))) or "Type a message below and press Enter.")
        with st.container(key="suggestions", horizontal=True):
            for suggestion in SUGGESTIONS.get(profile.name, ()):
                typed = _TYPED.get(suggestion, suggestion)
                st.button(suggestion, key=f"suggest_{typed}", on_click=say, args=(typed,))
