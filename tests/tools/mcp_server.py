"""An MCP server for the tests: python mcp_server.py [PORT]; through its pipes, or over HTTP on loopback."""

from __future__ import annotations

import os
import sys

from mcp.server import MCPServer

server = MCPServer("numbers")


@server.tool()
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
def shout(text: str, times: int = 1) -> str:
    """The text in capitals, repeated."""
    return " ".join([text.upper()] * times)


@server.tool()
def fail() -> str:
    """Never works."""
    raise ValueError("it never works")


@server.tool()
def die() -> str:
    """Ends the server at once."""
    os._exit(1)


@server.tool()
def process() -> str:
    """Return the process id, and whether the process sees a secret."""
    return f"{os.getpid()} {os.environ.get('CANARY_KEY', 'no secret')}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
