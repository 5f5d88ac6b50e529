"""Clients of the service: the tunnel calls and the data calls, with their retries."""
