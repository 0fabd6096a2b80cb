"""Card and dialog *Connect a model*: servers on this machine by one click, and keys of providers.

Only the local owner can connect one; others read how it works.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

import streamlit as st

from roost.connections import local_servers, providers
from roost.connections.connections import Connections
from roost.connections.local_servers import LocalServer
from roost.connections.providers import PROVIDERS, ProviderInfo
from roost.errors import RoostError, Unavailable
from roost.ports import Profile
from roost.ui import dialogs, page_url
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.shell.background import BackgroundCall
from roost.ui.sidebar.sidebar import Draft
from roost.ui.text import plain

LABEL = "Connect a model"
ABOUT = "Use Ollama or another server on this machine, or the key of a provider."
KEYS = (
    "The models of a provider need an API key, which you create and pay for on the provider's page. Roost keeps it in "
    "a file that only you can read, and sends it to that provider only."
)
OWNER = (
    "Only the owner of this Roost can connect a model: the user who runs it, signed in with the link that `roost up` "
    "or `roost link` prints."
)
NONE_FOUND = "No model server answers on this machine. Start Ollama, LM Studio, llama.cpp or vLLM, then look again."
LOOK = 0.3
"""Seconds between two looks at a job."""
TEST_LIMIT = 15.0
SEARCH_LIMIT = 5.0


def card() -> None:
    """Draw the card beside those of the agents."""
    with st.container(key="card_connect", width=226):
        st.html('<span class="roost-avatar" aria-hidden="true" style="--size:2rem;--hue:170">+</span>')
        st.button(LABEL, key="choose_connect", type="tertiary", wrap=False, on_click=dialogs.show, args=(LABEL,))
        st.caption(ABOUT)


def dialog(connections: Connections | None, draft: Draft) -> None:
    """Draw the dialog in each run of the page until it is dismissed; without `connections` it only explains."""
    if dialogs.shown(LABEL) is None:
        return
    if connections is None:
        _explanation()
    else:
        _connect(connections, draft)


def close() -> None:
    if isinstance(job := st.session_state.get("key_test"), BackgroundCall):
        job.drop()
    dialogs.close()
    for name in ("local_search", "key_test", "connect_problem"):
        st.session_state.pop(name, None)


@dialogs.dialog(LABEL, on_dismiss=close)
def _explanation() -> None:
    st.markdown(f"{KEYS}\n\n{OWNER}")


@dialogs.dialog(LABEL, width="medium", on_dismiss=close)
def _connect(connections: Connections, draft: Draft) -> None:
    with st.container(key="connect_notice"):
        if problem := st.session_state.get("connect_problem"):
            components.notice(problem)
    if missing := connections.missing_extra:
        st.markdown(f"Models need an extra: run `{missing}`, then restart Roost.")
        return
    st.markdown("**On this machine**")
    _found_here(connections, draft)
    st.markdown(f"**With a key**\n\n{KEYS}")
    _key_form(connections, draft)


def _connected(draft: Draft, profile: Profile) -> None:
    """Choose the new profile for the next talk."""
    close()
    draft.profile, draft.agent = profile.name, None
    page_url.start_new()
    st.session_state["notice"] = f"You can now talk with {profile.shown}: type a message"


# --- servers on this machine ----------------------------------------------------------------------


def _found_here(connections: Connections, draft: Draft) -> None:
    job = st.session_state.get("local_search")
    if not isinstance(job, BackgroundCall):
        job = BackgroundCall(_search, "roost-local-servers", SEARCH_LIMIT)
        st.session_state["local_search"] = job
    if not job.is_done:
        st.fragment(_wait, run_every=LOOK)(job, "Looking for model servers on this machine…")
        return
    try:
        servers: list[LocalServer] = job.result()
    except RoostError:
        servers = []
    for number, server in enumerate(servers):
        st.caption(plain(f"{server.name} at {urlsplit(server.url).netloc}"))
        with st.container(key=f"models_{number}", horizontal=True):
            for place, model in enumerate(server.models):
                chosen = partial(_choose, connections, draft, server, model)
                st.button(plain(model), key=f"model_{number}_{place}", on_click=chosen)
    if not servers:
        st.caption(NONE_FOUND)
    st.button("Look again", key="look_again", type="tertiary", on_click=_look_again)


def _search(_: Callable[[], bool]) -> list[LocalServer]:
    return local_servers.find(local_servers.places())


@uninterrupted
def _look_again() -> None:
    st.session_state.pop("local_search", None)


@uninterrupted
def _choose(connections: Connections, draft: Draft, server: LocalServer, model: str) -> None:
    try:
        _connected(draft, connections.add_local(server, model))
    except RoostError as error:
        st.session_state["connect_problem"] = str(error)


def _wait(job: BackgroundCall[object], words: str) -> None:
    """Draw a line until the job is done; then draw the page again."""
    if job.is_done:
        st.rerun()
    st.caption(words)


# --- keys of providers ----------------------------------------------------------------------------


def _key_form(connections: Connections, draft: Draft) -> None:
    job = st.session_state.get("key_test")
    if isinstance(job, BackgroundCall):
        if not job.is_done:
            st.fragment(_wait, run_every=LOOK)(job, "Testing the key…")
            return
        _finish(draft, job)
    links = ", ".join(f"[{provider.label}]({provider.page})" for provider in PROVIDERS.values())
    st.markdown(f"Create a key at {links}.")
    with st.form("key_form", border=False):
        st.selectbox("Provider", list(PROVIDERS), key="key_provider", format_func=lambda name: PROVIDERS[name].label)
        st.text_input("Key", type="password", key="key_value", autocomplete="off")
        st.form_submit_button("Test and save", on_click=_test, args=(connections,))


@uninterrupted
def _test(connections: Connections) -> None:
    """Test the key in the background, and keep it if it is accepted. The field is emptied at once."""
    key, provider = str(st.session_state["key_value"]), PROVIDERS[st.session_state["key_provider"]]
    st.session_state["key_value"] = ""
    st.session_state.pop("connect_problem", None)
    try:
        key = providers.cleaned(key)
    except RoostError as error:
        st.session_state["connect_problem"] = str(error)
        return
    st.session_state["key_test"] = BackgroundCall(
        partial(_tried, connections, provider, key), "roost-key-test", TEST_LIMIT
    )


def _tried(connections: Connections, provider: ProviderInfo, key: str, is_wanted: Callable[[], bool]) -> Profile:
    providers.try_key(provider, key)
    if not is_wanted():  # the dialog was closed, or has reported a failure
        raise Unavailable("the key was not saved: the test took too long, or the dialog was closed")
    return connections.add_key(provider, key)


def _finish(draft: Draft, job: BackgroundCall[Profile]) -> None:
    st.session_state.pop("key_test", None)
    try:
        profile = job.result()
    except RoostError as error:
        st.session_state["connect_problem"] = str(error)
    else:
        _connected(draft, profile)
    st.rerun()
