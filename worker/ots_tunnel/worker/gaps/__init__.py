"""Possible gaps: changes that may be missing because nobody read them in time (docs/architecture.md 3.8)."""
