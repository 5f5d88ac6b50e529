"""Consume Tablestore tunnels."""

__version__ = "0.1.0"
