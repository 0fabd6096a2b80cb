"""The talk page: history, the live answer, and the line to type in.

The script draws what has been read and ends. A fragment, the pulse, looks for more: quickly while an answer
is being written, slowly otherwise. It draws only the message being written; when anything else has
changed, it has the whole page drawn again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from roost.core.approvals import Approval
from roost.core.messages import Message, Sender, Status
from roost.core.talks import Talk
from roost.errors import Invalid, NotFound, RoostError
from roost.service import AgentService
from roost.ui import address, deciding, menu, parts, sidebar, waiting
from roost.ui.reading import Reading
from roost.ui.sending import Line
from roost.ui.sidebar import Draft

QUICK = 0.2
SLOW = 3.0
CALM = 5.0
"""Seconds between looks: while an answer is being written, afterwards, and when nothing has happened for a while."""
CALM_AFTER = 15
"""Looks that found nothing."""
LOOK_AT_TALKS = 4.0
"""Seconds between looks at the list of talks."""
LOOK_AT_QUESTIONS = 1.0
"""Seconds between looks at what waits for the person's word; no more often than the page looks at all."""
GONE = "This talk does not exist any more. Here is a new one."


@dataclass(slots=True)
class Scene:
    """What the page shows, as the pulse compares it with what there is."""

    service: AgentService
    user: str
    reading: Reading | None
    talks: list[Talk]
    every: float
    waiting: tuple[Approval, ...] = ()
    """What waits for the person's word, in this talk and elsewhere."""
    shape: tuple[object, ...] = ()
    looks: int = 0

    def remember(self) -> None:
        self.shape = self.now(self.talks)

    def now(self, talks: list[Talk]) -> tuple[object, ...]:
        reading = self.reading.shape if self.reading else ()
        asked = tuple(one.approval_id for one in self.waiting)
        return (reading, sidebar.shape(talks), self.service.health().problem, asked)

    @property
    def is_asking(self) -> bool:
        """Whether the open talk waits for the person's word."""
        return bool(deciding.here(self.waiting, self.reading))

    @property
    def is_stale(self) -> bool:
        """Read what is new; whether more has changed than the text being written. Raises NotFound."""
        self.looks += 1
        if self.reading:
            self.reading.go_on(self.service)
        if self.looks % max(1, round(LOOK_AT_TALKS / self.every)) == 0:
            self.talks = sidebar.listed(self.service, self.user)
        if self.looks % max(1, round(LOOK_AT_QUESTIONS / self.every)) == 0:
            self.waiting = deciding.waiting(self.service, self.user)
        return self.now(self.talks) != self.shape


def page(service: AgentService, user: str) -> None:
    reading, talk = _open(service, user)
    talks = sidebar.listed(service, user)
    draft = _draft(service)
    found = deciding.waiting(service, user)
    sidebar.draw(service, user, talks, talk, draft, waiting.elsewhere(found, reading.talk_id if reading else None))
    running = reading is not None and reading.running
    calm = st.session_state.pop("calm", False)
    menu.dialog(service, user)
    waiting.dialog(service, user, talks)
    scene = Scene(service, user, reading, talks, QUICK if running else CALM if calm else SLOW, found)
    line = Line(service, user, draft, reading.talk_id if reading else None)
    _history(scene, line)
    with st.bottom:  # both are always there, so that the line to type in stays where it is
        _notices(service)
        deciding.draw(service, deciding.here(found, reading))
        with st.container(key="controls"):
            if reading and running:
                st.button("Stop", key="stop", on_click=_stop, args=(reading, service), shortcut="Esc")
    # Not inside `st.bottom`: only where Streamlit puts it there by itself the page follows the answer down.
    st.chat_input("Type a message", key="prompt", on_submit=_submit, args=(line,))
    parts.behaviour(reading.talk_id if reading else "new")


# --- what is open ---------------------------------------------------------------------------------


def _open(service: AgentService, user: str) -> tuple[Reading | None, Talk | None]:
    """The talk that the address names, read up to now; a talk that is gone says so and leaves a new one."""
    talk_id = address.opened()
    if talk_id is None:
        st.session_state.pop("reading", None)
        return None, None
    try:
        talk = service.get_session(user, talk_id)
        reading = st.session_state.get("reading")
        if isinstance(reading, Reading) and (reading.user_id, reading.talk_id) == (user, talk_id):
            reading.go_on(service)
        else:
            reading = Reading.start(service, user, talk_id)
    except (NotFound, Invalid):
        address.start_new()
        st.session_state.pop("reading", None)
        st.session_state["notice"] = GONE
        return None, None
    st.session_state["reading"] = reading
    return reading, talk


def _draft(service: AgentService) -> Draft:
    names = [profile.name for profile in service.profiles()]
    draft = st.session_state.get("draft")
    if not isinstance(draft, Draft) or draft.profile not in names:
        draft = st.session_state["draft"] = Draft(names[0])
    return draft


def _notices(service: AgentService) -> None:
    """Just above the line to type in, where the eye is."""
    with st.container(key="notices"):
        problem = service.health().problem
        if problem:
            parts.notice(problem)
        notice = st.session_state.get("notice")  # until the person does something else
        if notice:
            parts.notice(notice)


# --- the messages ---------------------------------------------------------------------------------


def _history(scene: Scene, line: Line) -> None:
    reading = scene.reading
    with st.container(key="older"):
        if reading and reading.more_before:
            st.button("Show older messages", key="show_older", on_click=_show_older, args=(scene.service,))
    pulse = st.fragment(_pulse, run_every=scene.every)
    scene.remember()
    with st.container(key="messages"):
        writing = reading.writing if reading else None
        for message in reading.messages if reading else ():
            if message is writing:
                parts.message(message, lambda: pulse(scene))
            else:
                parts.message(message, lambda message=message: parts.finished(message))  # type: ignore[misc]
        if writing is None:
            pulse(scene)
    if reading is None:
        parts.invitation(scene.service.profiles(), line.draft.profile, _choose, partial(_say, line))
    else:
        _try_again(reading, line)


def _pulse(scene: Scene) -> None:
    """Draw the message being written, or the sign that one is on its way. The first time it is part of the page."""
    try:
        if scene.looks and scene.is_stale:
            _draw_again(scene)
    except RoostError:
        _draw_again(scene)  # the page says what is wrong
    scene.looks += not scene.looks
    if scene.every == SLOW and scene.looks > CALM_AFTER:
        st.session_state["calm"] = True
        _draw_again(scene)
    reading = scene.reading
    if reading and reading.writing:
        parts.content(reading.writing, is_asking=scene.is_asking)
    elif reading and reading.running:
        parts.waiting(is_asking=scene.is_asking)


def _draw_again(scene: Scene) -> None:
    """The same page anew: the address that came with this look may be older than what was opened since."""
    address.show(scene.reading.talk_id if scene.reading else None)
    st.rerun()


def _try_again(reading: Reading, line: Line) -> None:
    last: Message | None = reading.messages[-1] if reading.messages else None
    if reading.running or last is None or last.sender is Sender.USER or last.status is not Status.FAILED:
        return
    question = reading.question_before(last.seq)
    if question:
        st.button("Try again", key="try_again", on_click=_say, args=(line, question.content))


# --- what people do -------------------------------------------------------------------------------


def _submit(line: Line) -> None:
    text = st.session_state["prompt"]
    if text:
        _say(line, text)


def _say(line: Line, text: str) -> None:
    try:
        address.open_talk(line.send(text))
    except RoostError as error:
        st.session_state["notice"] = str(error)
        st.session_state["prompt"] = text  # into the line, so that nothing typed is lost


def _stop(reading: Reading, service: AgentService) -> None:
    with suppress(RoostError):  # the talk is gone: the page says so
        service.stop(reading.user_id, reading.talk_id)


def _show_older(service: AgentService) -> None:
    reading: Any = st.session_state.get("reading")
    try:
        if isinstance(reading, Reading):
            reading.go_back(service)
    except RoostError as error:
        st.session_state["notice"] = str(error)


def _choose() -> None:
    draft = st.session_state.get("draft")
    if isinstance(draft, Draft):
        draft.profile = st.session_state["profile"]
