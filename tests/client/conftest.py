"""The client's tests use the API's real server."""

from tests.api.conftest import served

__all__ = ["served"]
