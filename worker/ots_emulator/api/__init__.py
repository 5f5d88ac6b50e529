"""Calls of the API, as the service answers them."""
