"""Times: seconds since 1970."""

from __future__ import annotations

from datetime import datetime

from roost.core.values import checks
from roost.errors import Invalid

EARLIEST, LATEST = -2_208_988_800, 253_402_214_400
"""The years 1900 to 9999."""


def timestamp(moment: object, what: str) -> float:
    """Return seconds since 1970 from a number or an aware datetime."""
    if isinstance(moment, datetime):
        if moment.utcoffset() is None:
            raise Invalid(f"{what} must have a time zone, and {moment.isoformat()} has none: add tzinfo=UTC or another")
        moment = moment.timestamp()
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not EARLIEST <= moment <= LATEST:
        raise Invalid(
            f"{what} must be a datetime or seconds since 1970, between 1900 and 9999, not {checks.shown(moment)}"
        )
    return float(moment)
