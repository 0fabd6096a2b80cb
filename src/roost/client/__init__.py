"""Client of a server: `connect(url, token)` returns a service like `roost.open`, `aconnect` one like `aopen`."""

from roost.client.remote import AsyncRemoteService, RemoteService, aconnect, connect

__all__ = ["AsyncRemoteService", "RemoteService", "aconnect", "connect"]
