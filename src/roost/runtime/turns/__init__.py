"""Actions, journal, tools, state and memories of a turn."""
