"""The sink that calls the user's Python code."""
