"""Which instance a command calls and with which keys: options, an object, a named profile, the environment.

Theory of operation. Every place that may name endpoint, instance and keys becomes an `Origin`. `choose` takes each of
the three from the first origin that has it, in this order:

1. options of the command line
2. the object of `--from-object`, or the profile of `--profile` (or `OTS_PROFILE`)
3. the variables `OTS_ENDPOINT`, `OTS_INSTANCE`, `OTS_ACCESS_KEY_ID` and their like
4. the profile that the file names as `default`

Keys are one thing: the id never comes from another origin than the secret. Origins remember the names of their
settings, so that a message says which of them is wrong.
"""

from __future__ import annotations

from ots_tunnel.connections.connection import Connection, Origin, choose

__all__ = ["Connection", "Origin", "choose"]
