"""The service over the network: `connect(url, token)` gives what `roost.open` does, `aconnect` what `aopen` does."""

from roost.client.remote import AsyncRemoteService, RemoteService, aconnect, connect

__all__ = ["AsyncRemoteService", "RemoteService", "aconnect", "connect"]
