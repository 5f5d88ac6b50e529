"""Carries out a plan: at the API server, at the service, and in the status."""
