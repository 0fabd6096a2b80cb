"""Serve the pages: beside the API, or alone with Streamlit's own server."""
