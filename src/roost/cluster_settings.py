"""Settings of a node in a cluster: table `[cluster]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

Text = Annotated[str, Field(min_length=1, max_length=500)]


class ClusterSettings(BaseModel):
    """Table `[cluster]`: the NATS servers that connect the nodes, and the lease of this node."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    nats: tuple[Text, ...]
    """URLs of the servers, which may contain a user and a password, or a token."""
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Name of this node for people; by default that of its machine."""
    credentials: Path | None = None
    """File with a JWT and a seed for NATS."""
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    """Certificate of this node for NATS, and its key."""
    lease: Annotated[float, Field(ge=1.0, le=600.0)] = 12.0
    """Seconds after which others take over the work of a node that has not renewed its lease."""

    @field_validator("nats", mode="before")
    @classmethod
    def _one_or_many(cls, given: object) -> object:
        return (given,) if isinstance(given, str) else given

    @field_validator("nats")
    @classmethod
    def _urls(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if not given or not all(_is_url(url) for url in given):
            raise ValueError(
                "must be URLs of NATS servers, such as nats://localhost:4222 or tls://nats.example.org:4222"
            )
        return given

    @model_validator(mode="after")
    def _whole_certificate(self) -> ClusterSettings:
        if self.key is not None and self.cert is None:
            raise PydanticCustomError(
                "limit", "{told}", {"key": "cert", "told": "must be given too, since there is a key"}
            )
        return self


def _is_url(url: str) -> bool:
    parts = urlsplit(url)
    try:
        return parts.scheme in ("nats", "tls") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # the port
        return False
