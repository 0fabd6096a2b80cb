"""Tools of a request: the model may call them, and the client runs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roost.api.openai.requests import ChatRequest, bad_request

CHOICES = ("auto", "none", "required")


def options(request: ChatRequest) -> dict[str, Any]:
    """Return the tools of a request as options of a talk; none if it has no tools, or must not use them."""
    choice = request.tool_choice
    if not request.tools:
        if choice not in (None, "auto", "none"):
            raise bad_request("`tool_choice` needs `tools`", "tool_choice")
        return {}
    if not isinstance(request.tools, list):
        raise bad_request("`tools` must be a list", "tools")
    tools = [_tool(one, f"tools[{number}]") for number, one in enumerate(request.tools)]
    if choice == "none":
        return {}
    if isinstance(choice, dict):
        tools, choice = [_chosen(choice, tools)], "required"
    if choice not in (None, *CHOICES):
        raise bad_request("`tool_choice` must be auto, none, required, or the name of a function", "tool_choice")
    return {"client_tools": tools, "tool_choice": choice or "auto"}


def names(request: ChatRequest) -> frozenset[str]:
    """Return the names of the tools that the client runs."""
    return frozenset(tool["function"]["name"] for tool in request.tools or ())


def _tool(one: Any, where: str) -> dict[str, Any]:
    function = one.get("function") if isinstance(one, dict) and one.get("type") == "function" else None
    if not isinstance(function, dict):
        raise bad_request(f"`{where}` must be a function: other tools are not supported", "tools")
    parameters, name = function.get("parameters"), function.get("name")
    if not isinstance(name, str):
        raise bad_request(f"`{where}.function.name` must be a text", "tools")
    return {
        "name": name,
        "description": function.get("description") or "",
        "parameters": {"type": "object", "properties": {}} if parameters is None else parameters,
    }


def _chosen(choice: Mapping[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    found = [tool for tool in tools if tool["name"] == name]
    if not found:
        raise bad_request("`tool_choice` names no function of `tools`", "tool_choice")
    return found[0]
