"""`roost chat`."""
