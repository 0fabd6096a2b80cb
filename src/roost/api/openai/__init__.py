"""OpenAI-compatible API: chat completions and models."""
