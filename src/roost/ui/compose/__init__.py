"""The message input: a text area with files, commands and shortcuts."""
