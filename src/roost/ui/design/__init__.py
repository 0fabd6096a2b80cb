"""Look of all pages: tokens, components, avatars."""
