"""A table whose rows can be opened and chosen."""
