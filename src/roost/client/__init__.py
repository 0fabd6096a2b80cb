"""The service over the network: `connect(url, token)` gives the same methods as `roost.open`."""

from roost.client.remote import RemoteService, connect

__all__ = ["RemoteService", "connect"]
