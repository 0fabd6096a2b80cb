"""Form for a new agent, filled in by a template."""

from __future__ import annotations

from typing import Any

import streamlit as st

from roost.core.values import addresses
from roost.errors import Invalid, RoostError
from roost.ui.agents import words
from roost.ui.agents.forms import config_fields
from roost.ui.agents.templates import FIRST, TEMPLATES, AgentTemplate
from roost.ui.callbacks import once, uninterrupted
from roost.ui.design.components import browser_zone
from roost.ui.shell import actions, frame, live, navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit

MAIN = ("description",)
OTHERS = tuple(field.name for field in config_fields.FIELDS if field.name not in MAIN)
_ERRORS = "create_errors"


def page(visit: Visit) -> None:
    frame.draw(visit, Route.AGENTS, title="New agent", actions=_back)
    live.draw(visit, lambda: _form(visit))


def _back() -> None:
    navigation.link(Route.AGENTS, "All agents", icon=False)


def _form(visit: Visit) -> None:
    labels = {name: template.label for name, template in TEMPLATES.items()}
    chosen = url_choice.choice("Template", "template", [FIRST, *(name for name in TEMPLATES if name != FIRST)], labels)
    template = TEMPLATES[chosen]
    st.caption(template.about)
    prefix = f"new_{chosen}"
    of, errors = st.session_state.get(_ERRORS, ("", {}))
    errors = errors if of == prefix else {}
    with st.form(f"form_{prefix}", enter_to_submit=False):
        _main_fields(visit, prefix, template, errors)
        with st.expander("More settings", expanded=any(name in errors for name in OTHERS)):
            config_fields.draw(prefix, template.config, errors, OTHERS)
        st.checkbox("Start it", True, key=f"{prefix}_start")
        arguments = (visit, prefix)
        st.form_submit_button("Create agent", key="create", type="primary", on_click=once(_create), args=arguments)


def _main_fields(visit: Visit, prefix: str, template: AgentTemplate, errors: dict[str, str]) -> None:
    st.text_input("Name", template.name, key=f"{prefix}_name", help="Up to 100 letters, digits, dots, - and _")
    config_fields.problem_of("name", errors)
    known = [profile.name for profile in visit.service.profiles()]
    first = template.config.profile if template.config.profile in known else ""
    options = [config_fields.DEFAULT, *known]
    st.selectbox("Profile", options, options.index(first or config_fields.DEFAULT), key=f"{prefix}_profile")
    config_fields.problem_of("profile", errors)
    config_fields.draw(prefix, template.config, errors, MAIN)
    if template.cron:
        st.text_area("Task of the schedule", template.prompt, key=f"{prefix}_prompt", height=80)
        st.text_input(f"When (cron, {browser_zone()})", template.cron, key=f"{prefix}_cron")
        config_fields.problem_of("cron", errors)


@uninterrupted
def _create(visit: Visit, prefix: str) -> None:
    """Create the agent and show it; or show the problems beside the fields."""
    name = str(st.session_state[f"{prefix}_name"]).strip()
    values, errors = config_fields.read(prefix)
    try:
        addresses.agent_id(name)
    except Invalid as error:
        errors["name"] = str(error)
    st.session_state[_ERRORS] = (prefix, errors)
    if errors:
        return actions.report("Nothing is created yet: see the problems below.")
    try:
        visit.service.agents.create(visit.user, name, start=bool(st.session_state[f"{prefix}_start"]), **values)
        _schedule(visit, prefix, name)
    except RoostError as error:
        return actions.report(error)
    url_choice.show(new=None, template=None, agent=name)
    return actions.succeed(f"Created {words.short(name)}.")


def _schedule(visit: Visit, prefix: str, name: str) -> None:
    """Set the schedule of the form; without a valid one the agent is not kept."""
    cron, prompt = (str(st.session_state.get(f"{prefix}_{part}") or "").strip() for part in ("cron", "prompt"))
    if not cron:
        return
    options: dict[str, Any] = {"cron": cron, "zone": str(browser_zone())}
    try:
        visit.service.schedules.create(visit.user, name, prompt, **options)
    except RoostError:
        visit.service.agents.delete(visit.user, name)
        raise
