"""Parts shared by all chat models: the context, tool calls, and the loop up to the answer."""
