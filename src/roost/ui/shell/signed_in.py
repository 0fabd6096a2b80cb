"""The user who is signed in, and links to the account and to sign out."""

from __future__ import annotations

import streamlit as st

from roost.ui.text import plain

VISITOR = "user_"
"""Prefix of the user ids of visitors."""
_ACCOUNT = '<a href="/account" target="_self">Account</a>'
_SIGN_OUT = '<form method="post" action="/sign-out"><button>Sign out</button></form>'


def draw(user: str, *, has_account: bool, can_sign_out: bool = True) -> None:
    """Draw the name and the links. A user of a proxy signs out there: the next request would sign in again."""
    with st.container(key="who"):
        st.caption(label(user))
        if has_account:
            links = _ACCOUNT + (_SIGN_OUT if can_sign_out else "")
            st.html(f'<nav class="roost-account" aria-label="Account">{links}</nav>')


def label(user: str) -> str:
    """Return the label of the user: the name of a signed-in user, or the end of a visitor's id."""
    if user.startswith(VISITOR):
        return f"Visitor {plain(user[-4:])} (this browser only)"
    return f"Signed in as {plain(user)}"
