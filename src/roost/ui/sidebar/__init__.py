"""Sidebar of the pages: talks, their menus, search, and pending approvals."""
