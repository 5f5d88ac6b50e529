"""Oracles of the data path: the truth at the source, the ledger of executed calls, and the judges of both."""
