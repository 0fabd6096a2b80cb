"""`roost export` and `roost import`."""
