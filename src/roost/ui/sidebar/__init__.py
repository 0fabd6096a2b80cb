"""Sidebar of the talk page: talks, their menus, search."""
