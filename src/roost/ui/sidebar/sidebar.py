"""Sidebar: a new talk, the list of talks, the settings of the open one, and the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import inf
from typing import Any

import streamlit as st

from roost.core.talks.talk import BusyPolicy, Talk
from roost.core.values.addresses import shortened
from roost.errors import Invalid, RoostError
from roost.ports import Profile
from roost.service import AgentService
from roost.ui import page_url
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.design.avatars import avatar
from roost.ui.shell import frame, navigation, signed_in
from roost.ui.shell.navigation import Route
from roost.ui.sidebar import importing, menu, search
from roost.ui.text import as_sentence

FIRST = 12
MORE = 30

BUSY = {
    BusyPolicy.INTERRUPT: "interrupts it",
    BusyPolicy.QUEUE: "is answered afterwards",
    BusyPolicy.REJECT: "is refused",
    BusyPolicy.ROLLBACK: "replaces it",
    BusyPolicy.STEER: "steers it",
    BusyPolicy.COLLECT: "waits for a pause in typing",
}
"""Labels of the policies for a message that arrives while an answer is being written."""


@dataclass(slots=True)
class Draft:
    """Settings of the next talk, which is created with its first message."""

    profile: str
    agent: str | None = None
    """Agent of the user to talk with, in place of the profile."""
    busy: str = BusyPolicy.INTERRUPT
    options: Mapping[str, Any] = field(default_factory=dict)


def listed(service: AgentService, user: str) -> list[Talk]:
    """Return one talk more than is shown, to know whether there are more."""
    return service.list_sessions(user, limit=int(st.session_state.get("talks_shown", FIRST)) + 1)


def shape(talks: Sequence[Talk]) -> tuple[object, ...]:
    """Return a value that changes whenever the list of talks looks different."""
    return tuple((talk.talk_session_id, talk.title, talk.running) for talk in talks)


def draw(
    service: AgentService,
    user: str,
    talks: Sequence[Talk],
    talk: Talk | None,
    draft: Draft,
    waiting: int = 0,
    unread: int = 0,
    *,
    has_accounts: bool = False,
    can_sign_out: bool = True,
) -> None:
    with st.sidebar:
        frame.brand()
        frame.page_links(unread, waiting)
        st.button("New talk", key="new_talk", type="primary", width="stretch", on_click=page_url.start_new)
        query = search.field()
        with st.container(key="talks", gap=None):
            if query:
                search.hits(service, user, query)
            else:
                _talks(talks, talk.root if talk else None)
        with st.expander("Settings of this talk" if talk else "Settings of the next talk", key="settings"):
            _settings(service, user, talk, draft)
            navigation.link(Route.APPROVALS, "Tools always allowed", icon=False, show="always")
        signed_in.draw(user, has_account=has_accounts, can_sign_out=can_sign_out)


def _talks(talks: Sequence[Talk], open_root: str | None) -> None:
    """Draw the talks; of branches one is listed, which is marked if any of them is open."""
    shown = int(st.session_state.get("talks_shown", FIRST))
    if not talks:
        st.caption("Your talks appear here.")
    day = ""
    for talk in talks[:shown]:
        if day != (day := components.period(talk.updated)):
            st.html(f'<div class="roost-day">{day}</div>')
        talk_id = talk.talk_session_id
        place = "open" if talk.root == open_root else "other"
        title = components.title(talk)
        with st.container(key=f"talk_{place}_{talk_id}", horizontal=True, vertical_alignment="center", gap=None):
            name = agent_name(talk)
            st.html(f'<span title="{escape(name)}">{avatar(name, "1.25rem")}</span>')
            st.button(
                f"{title} :green[●]" if talk.running else title,
                key=f"open_{talk_id}",
                type="tertiary",
                width="stretch",
                wrap=False,
                on_click=page_url.open_talk,
                args=(talk_id,),
            )
            menu.button(talk)
    if len(talks) > shown:
        st.button("More talks", key="more_talks", type="tertiary", on_click=_show_more, args=(shown,))
    importing.button()


def agent_name(talk: Talk) -> str:
    """Return the name of the agent or profile of a talk."""
    return shortened(talk.agent, talk.user_id).removeprefix("agent:") if talk.agent else talk.profile


def _show_more(shown: int) -> None:
    st.session_state["talks_shown"] = min(shown + MORE, 900)


# --- settings -------------------------------------------------------------------------------------


def _settings(service: AgentService, user: str, talk: Talk | None, draft: Draft) -> None:
    """Draw the form with the stored settings; a change elsewhere creates a new form.

    They are saved by a callback: a run of the page may be cut off by the next one before it reaches the form.
    """
    stored = talk or draft
    form = f"settings_{hash((talk and (talk.talk_session_id, talk.profile), stored.busy, repr(stored.options)))}"
    if problem := st.session_state.pop("settings_problem", ""):
        st.error(problem)
    with st.form(form, border=False):
        if talk and not talk.agent:
            _profile_field(form, service.profiles(), talk.profile)
        _option_fields(form, stored.options, next((p for p in service.profiles() if p.name == stored.profile), None))
        policies = list(BUSY)
        st.selectbox(
            "A message sent during an answer",
            policies,
            index=policies.index(BusyPolicy(stored.busy)),
            format_func=lambda policy: BUSY[policy],
            key=f"{form}_busy",
        )
        st.form_submit_button("Save", width="stretch", on_click=_save, args=(service, user, talk, draft, form))


def _profile_field(form: str, profiles: Sequence[Profile], current: str) -> None:
    names = {profile.name: profile.shown for profile in profiles}
    names = names if current in names else {current: current, **names}
    st.selectbox("Agent", names, index=[*names].index(current), format_func=names.__getitem__, key=f"{form}_profile")


def _option_fields(form: str, options: Mapping[str, Any], profile: Profile | None) -> None:
    usual = "default of the agent"
    st.text_input(
        "Model",
        options.get("model", ""),
        placeholder=(profile and profile.model) or usual,
        key=f"{form}_model",
    )
    # Text: a field for numbers that is given its value here could not be emptied.
    temperature = options.get("temperature")
    st.text_input(
        "Temperature",
        "" if temperature is None else f"{temperature:g}",
        placeholder=f"0 to 2, {usual}",
        key=f"{form}_temperature",
    )
    st.text_area(
        "System prompt",
        options.get("instructions", ""),
        placeholder="Instructions for the agent",
        key=f"{form}_instructions",
    )


def _temperature(text: str) -> float:
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = inf
    if not 0 <= value <= 2:
        raise Invalid(f"the temperature must be a number from 0 to 2, not {text!r:.80}")
    return value


@uninterrupted
def _save(service: AgentService, user: str, talk: Talk | None, draft: Draft, form: str) -> None:
    """Save what was changed in the form; another tab may have changed the rest meanwhile."""
    stored = talk or draft
    given = {name: st.session_state.get(f"{form}_{name}") for name in ("model", "temperature", "instructions")}
    shown = {name: value for name, value in given.items() if value not in (None, "")}
    try:
        if "temperature" in shown:
            shown["temperature"] = _temperature(str(shown["temperature"]))
    except Invalid as error:
        st.session_state["settings_problem"] = as_sentence(error)
        return
    changed = {name for name in given if shown.get(name) != stored.options.get(name)}
    busy = st.session_state.get(f"{form}_busy")
    if talk is None:
        draft.busy, draft.options = str(busy), shown
        return
    profile = st.session_state.get(f"{form}_profile", talk.profile)
    try:
        newest = service.get_session(user, talk.talk_session_id).options
        options = {name: value for name, value in newest.items() if name not in changed}
        service.configure(
            user,
            talk.talk_session_id,
            profile=profile if profile != talk.profile else None,
            busy=busy if busy != talk.busy else None,
            options=options | {name: value for name, value in shown.items() if name in changed} if changed else None,
        )
        st.toast("Saved.")
    except RoostError as error:
        st.session_state["settings_problem"] = as_sentence(error)
