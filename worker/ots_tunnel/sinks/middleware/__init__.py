"""Wrappers around a sink: transforms, rate limit, permanent errors, dead letters."""
