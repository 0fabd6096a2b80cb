"""The message list of the talk page: an element of our own in the browser, and what it is sent."""
