"""Whose requests the admin port takes: any page that is open in a browser of this machine reaches the port as well.

Such a page betrays itself by its origin. One whose name was bound to this machine's address after it was loaded has the
right origin (DNS rebinding), but under a name that nobody has given to this port. An address cannot be bound anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from ots_emulator.refusal import Refusal

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
#: They tell nothing of what is stored; probes may call them under any name.
_OPEN: Final = frozenset({"/", "/healthz"})


def own_page(names: Callable[[], Iterable[str]]) -> Middleware:
    """Return the middleware that refuses requests of other sites; `names` are those of the port beside localhost."""

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        # Every browser sends one.
        host = request.headers.get("Host", "localhost")
        known = _is_local(host) or _name_of(host) in {name.lower() for name in names()}
        if not known and request.path not in _OPEN:
            text = f"Host: found {host!r}, allowed are addresses, localhost and the names of the setting admin_names"
            raise Refusal("OTSNoPermissionAccess", text)
        origin = request.headers.get("Origin")
        if request.method != "GET" and origin not in (None, f"http://{host}", f"https://{host}"):
            raise Refusal("OTSNoPermissionAccess", f"Origin: found {origin!r}, allowed are pages of {host!r}")
        return await handler(request)

    return checked


def _name_of(host: str) -> str:
    """Return the name or address of a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].rstrip(".").lower()


def _is_local(host: str) -> bool:
    name = _name_of(host)
    try:
        ip_address(name)
    except ValueError:
        # Browsers resolve these to the machine itself without asking anybody.
        return name == "localhost" or name.endswith(".localhost")
    return True
