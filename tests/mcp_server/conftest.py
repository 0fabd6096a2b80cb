"""Fixtures of the tests of MCP: the server of the API's tests."""

from tests.api.conftest import served

__all__ = ["served"]
