"""Dispatch of committed envelopes to awake agents and talks; timers and claims."""
