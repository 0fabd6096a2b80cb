"""Commands of `roost` itself; those of groups are in `commands`."""
