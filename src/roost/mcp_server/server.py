"""MCP server over the tools, for any transport of the `mcp` package. Importing it takes some tenths of a second."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

import roost
from roost.errors import RoostError, public
from roost.mcp_server import tools
from roost.mcp_server.callers import CallCancelled, McpCaller
from roost.mcp_server.results import schema_of
from roost.mcp_server.talking import McpContext, TalkKeys
from roost.mcp_server.tools import ServedTool

if TYPE_CHECKING:
    from roost.mcp_server.talking import Service

log = logging.getLogger("roost.mcp")

INSTRUCTIONS = (
    "Roost is a home for long-lived agents. Each tool ask_NAME asks one agent; list_agents lists all of them."
    " Use talk for a dialogue, give_task for work in the background, and read_mail for answers by mail."
)
CANCELLED = -32800
"""Code of a request that its client has cancelled, as in the Language Server Protocol."""
MOST_MISTAKES = 5
"""Invalid arguments named in one error."""
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class McpHost:
    """Functions of a transport: the caller of a request, the service of a call, and a place for it."""

    caller: Callable[[Context], McpCaller]
    service: Callable[[], AbstractAsyncContextManager[Service]]
    place: Callable[[McpCaller, Context], AbstractContextManager[None]]
    """Entered for each call; raises LimitReached if there are too many, and CallCancelled if the client cancels it."""


def create_server(host: McpHost) -> Server[Any]:
    """Return the server for a transport."""
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it logs several lines for each request
    handlers = _Handlers(host)
    return Server(
        "roost",
        version=roost.__version__,
        title="Roost",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=_schema_by_name,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
    )


def over_http(server: Server[Any], most_bytes: int) -> StreamableHTTPSessionManager:
    """Return the server for HTTP. It keeps no sessions: a restart breaks no client."""
    return StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=most_bytes)


class _Handlers:
    def __init__(self, host: McpHost) -> None:
        self._host = host
        self._keys = TalkKeys()

    async def list_tools(self, request: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        caller = self._host.caller(request)
        try:
            async with self._host.service() as service:
                found = await tools.listed(self._context(service, caller, request))
        except Exception as error:
            raise MCPError(types.INTERNAL_ERROR, _sentence(error, caller)) from error
        return types.ListToolsResult(tools=[_declared(tool) for tool in found])

    async def call_tool(self, request: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool. Errors of the tool are results; an unknown tool is an error of the protocol."""
        tool = tools.find(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"unknown tool {params.name!r:.80}: see tools/list")
        caller = self._host.caller(request)
        try:
            given = tool.takes.model_validate(params.arguments or {})
            with self._host.place(caller, request):
                async with self._host.service() as service:
                    result = await tool.call(self._context(service, caller, request), given)
        except ValidationError as error:
            return _failed(_mistakes(error))
        except CallCancelled:
            raise MCPError(CANCELLED, "request cancelled") from None
        except Exception as error:
            return _failed(_sentence(error, caller))
        return _succeeded(result)

    def _context(self, service: Service, caller: McpCaller, request: Context) -> McpContext:
        async def report(written: float, text: str) -> None:
            await request.session.report_progress(written, message=text)

        return McpContext(service, caller.user, report, self._keys)


def _declared(tool: ServedTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_schema(tool.takes),
        output_schema=_schema(tool.gives, "serialization"),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.is_read_only, destructive_hint=False, open_world_hint=not tool.is_read_only
        ),
    )


@lru_cache
def _schema(model: type[BaseModel], mode: Any = "validation") -> dict[str, Any]:
    return schema_of(model, mode=mode)


def _schema_by_name(name: str) -> dict[str, Any] | None:
    """Return the schema of a tool's arguments: the package checks headers by it, and would otherwise list all tools."""
    tool = tools.find(name)
    return None if tool is None else _schema(tool.takes)


def _succeeded(result: BaseModel) -> types.CallToolResult:
    content = result.model_dump(mode="json")
    # Also as text: many clients pass only this to their model.
    text = json.dumps(content, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=content)


def _failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)


def _sentence(error: Exception, caller: McpCaller) -> str:
    """Return the sentence of an error; for an unexpected one only a reference to the log."""
    if isinstance(error, RoostError):
        return str(error) if caller.is_operator else public(error)
    reference = secrets.token_hex(4).upper()
    log.error("tool failed", exc_info=error, extra={"reference": reference, "error_type": type(error).__name__})
    return f"Internal error; try again, or look up {reference} in the log."


def _mistakes(error: ValidationError) -> str:
    """Return which arguments are invalid, and what is expected; never the values, which may be long or secret."""
    found = []
    for detail in error.errors(include_url=False, include_input=False, include_context=False)[:MOST_MISTAKES]:
        field = ".".join(str(part) for part in detail["loc"][:1]) or "the arguments"
        said = _WORDS.get(detail["type"]) or detail["msg"].replace("Input should be", "must be")
        found.append(f"{field:.80}: {said}")
    return "; ".join(dict.fromkeys(found))


_WORDS = {"missing": "must be given", "extra_forbidden": "unknown argument"}
