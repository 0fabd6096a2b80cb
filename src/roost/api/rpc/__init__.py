"""JSON-RPC 2.0 over a WebSocket: all methods of the service, and subscriptions."""
