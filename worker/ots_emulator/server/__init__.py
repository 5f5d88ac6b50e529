"""The HTTP server: authentication, faults, history and ports."""
