"""Which certificates of servers are trusted: those of the system, in one context for all transports of the process.

A context holds every certificate of the system's authorities: half a MB, and 20 ms until they are read. An operator has
a transport for each instance that its objects use.
"""

from __future__ import annotations

import os
import ssl
from weakref import WeakValueDictionary

#: Variables by which OpenSSL finds the certificates.
VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")

_shared: WeakValueDictionary[tuple[str | None, ...], ssl.SSLContext] = WeakValueDictionary()


def system_trust() -> ssl.SSLContext:
    """The context that trusts the system's authorities.

    It is read anew where nothing holds it any more, or the variables of OpenSSL have changed.
    """
    key = tuple(os.environ.get(name) for name in VARIABLES)
    found = _shared.get(key)
    if found is None:
        found = _shared[key] = ssl.create_default_context()
    return found
