"""Settings of an agent."""

from __future__ import annotations

from zlib import crc32

import streamlit as st

from roost.core.monitoring.health import Inspection
from roost.errors import RoostError
from roost.ui.agents.forms import config_fields
from roost.ui.callbacks import uninterrupted
from roost.ui.shell import actions
from roost.ui.shell.visit import Visit

_ERRORS = "settings_errors"


def draw(visit: Visit, seen: Inspection) -> None:
    """Draw the form. Its keys follow the settings, so that it shows those that were saved, here or elsewhere."""
    agent = seen.agent
    prefix = f"set_{crc32(f'{agent.agent_id} {agent.config.to_json()}'.encode())}"
    of, errors = st.session_state.get(_ERRORS, ("", {}))
    errors = errors if of == prefix else {}
    known = [profile.name for profile in visit.service.profiles()]
    with st.form(f"settings_{prefix}", enter_to_submit=False):
        config_fields.profile(prefix, agent.config.profile, known, errors)
        config_fields.draw(prefix, agent.config, errors)
        arguments = (visit, agent.agent_id, prefix)
        st.form_submit_button("Save", key=f"settings_save_{prefix}", type="primary", on_click=_save, args=arguments)


@uninterrupted
def _save(visit: Visit, agent_id: str, prefix: str) -> None:
    values, errors = config_fields.read(prefix)
    if not errors:
        try:
            visit.service.agents.configure(visit.user, agent_id, **values)
        except RoostError as error:
            return actions.report(error)
    st.session_state[_ERRORS] = (prefix, errors)
    if errors:
        actions.report("Nothing is saved yet: see the problems below.")
    else:
        actions.succeed("Saved.")
    return None
