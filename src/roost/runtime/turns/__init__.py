"""Actions, journal, tools and memory of a turn."""
