"""MCP server: agents, talks, tasks, mail and events as tools of MCP clients, over HTTP and standard input."""
