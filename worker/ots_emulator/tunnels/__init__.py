"""Tunnels of the emulator: channels, scheduling, delivery and tokens."""
