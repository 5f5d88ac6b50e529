"""The admin port: state to look at, and levers for tests; never offered by the data port."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, fields
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from ots_emulator.admin.state import Document, state_of
from ots_emulator.refusal import Refusal, parameter_invalid
from ots_emulator.server.faults import FaultRule

if TYPE_CHECKING:
    from ots_emulator.emulator import Emulator

_PAGE = files("ots_emulator.admin") / "page.html"
#: Nothing of the page comes from elsewhere, and it shows what clients named: no script but its own may run in it.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:",
    "Cache-Control": "no-store",
}
_RULE = TypeAdapter(FaultRule)
_RULE_FIELDS = frozenset(field.name for field in fields(FaultRule))


def admin_application(emulator: Emulator) -> web.Application:
    """Return the application behind the admin port; every lever is a method of the emulator."""

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def state(request: web.Request) -> web.Response:
        return web.json_response(state_of(emulator))

    async def calls(request: web.Request) -> web.Response:
        return web.json_response([asdict(call) for call in emulator.history.newest_first()])

    async def page(request: web.Request) -> web.Response:
        return web.Response(body=_PAGE.read_bytes(), content_type="text/html", charset="utf-8", headers=_PAGE_HEADERS)

    async def faults(request: web.Request) -> web.Response:
        return web.json_response({"rules": [asdict(rule) for rule in emulator.faults.rules]})

    application = web.Application(middlewares=[_refusals])
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/", page)
    application.router.add_get("/state", state)
    application.router.add_get("/calls", calls)
    application.router.add_get("/faults", faults)
    for path, lever in _LEVERS.items():
        application.router.add_post(path, _posted(emulator, partial(lever, emulator)))
    return application


def _split(emulator: Emulator, document: Document) -> Document:
    parent, *children = emulator.split(
        _text(document, "instance"), _text(document, "table"), _optional_text(document, "partition")
    )
    return {"parent": parent, "children": children}


def _merge(emulator: Emulator, document: Document) -> Document:
    *parents, child = emulator.merge(
        _text(document, "instance"), _text(document, "table"), _optional_text(document, "partition")
    )
    return {"parents": parents, "child": child}


def _clock(emulator: Emulator, document: Document) -> Document:
    return {"time": emulator.advance_clock(_number(document, "advance"))}


def _settings(emulator: Emulator, document: Document) -> Document:
    return asdict(emulator.change_settings(**document))


def _suspend(emulator: Emulator, document: Document) -> Document:
    emulator.suspend(_text(document, "instance"), _text(document, "tunnel"), _text(document, "channel"))
    return {}


def _resume(emulator: Emulator, document: Document) -> Document:
    emulator.resume(_text(document, "instance"), _text(document, "tunnel"), _text(document, "channel"))
    return {}


def _conflict(emulator: Emulator, document: Document) -> Document:
    instance, tunnel = _text(document, "instance"), _text(document, "tunnel")
    return {"sequence": emulator.conflict(instance, tunnel, _text(document, "channel"))}


def _partitions(emulator: Emulator, document: Document) -> Document:
    count = document.get("count")
    if not isinstance(count, int) or count < 1:
        raise parameter_invalid(f"count: found {count!r}, allowed is a whole number from 1 on")
    emulator.set_partitions(_text(document, "instance"), _text(document, "table"), count)
    return {"count": count}


def _expire_clients(emulator: Emulator, document: Document) -> Document:
    instance, tunnel = _text(document, "instance"), _text(document, "tunnel")
    return {"expired": emulator.expire_clients(instance, tunnel, _optional_text(document, "client"))}


def _expire_tunnel(emulator: Emulator, document: Document) -> Document:
    emulator.expire_tunnel(_text(document, "instance"), _text(document, "tunnel"))
    return {}


def _rebalance(emulator: Emulator, document: Document) -> Document:
    emulator.rebalance(_text(document, "instance"), _text(document, "tunnel"), _text(document, "channel"))
    return {}


def _trim(emulator: Emulator, document: Document) -> Document:
    emulator.trim(_text(document, "instance"), _text(document, "table"))
    return {}


def _faults(emulator: Emulator, document: Document) -> Document:
    if document.get("clear"):
        emulator.faults.clear()
    elif isinstance(seconds := document.get("unavailable"), int | float):
        emulator.faults.unavailable(seconds, emulator.clock.now())
    else:
        emulator.faults.add(_rule(document))
    return {"rules": len(emulator.faults)}


_LEVERS: dict[str, Callable[[Emulator, Document], Document]] = {
    "/split": _split,
    "/merge": _merge,
    "/clock": _clock,
    "/settings": _settings,
    "/partitions": _partitions,
    "/clients/expire": _expire_clients,
    "/tunnels/expire": _expire_tunnel,
    "/channels/rebalance": _rebalance,
    "/channels/suspend": _suspend,
    "/channels/resume": _resume,
    "/channels/conflict": _conflict,
    "/streams/trim": _trim,
    "/faults": _faults,
}


def _posted(
    emulator: Emulator, lever: Callable[[Document], Document]
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            document: Any = json.loads(await request.text() or "{}")
        except json.JSONDecodeError as error:
            raise parameter_invalid(f"body is no JSON: {error}") from error
        if not isinstance(document, dict):
            raise parameter_invalid("body is no JSON object")
        answer = lever(document)
        emulator.commit()
        return web.json_response(answer)

    return handle


@web.middleware
async def _refusals(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refusal as refusal:
        return web.json_response({"code": refusal.code, "message": refusal.message}, status=refusal.status)


def _text(document: Document, name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise parameter_invalid(f"{name}: found {value!r}, a text is needed")
    return value


def _number(document: Document, name: str) -> float:
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise parameter_invalid(f"{name}: found {value!r}, a number is needed")
    return float(value)


def _optional_text(document: Document, name: str) -> str | None:
    return None if document.get(name) is None else _text(document, name)


def _rule(document: Document) -> FaultRule:
    unknown = sorted(set(document) - _RULE_FIELDS)
    if unknown:
        raise parameter_invalid(f"{', '.join(unknown)}: unknown, a rule knows {', '.join(sorted(_RULE_FIELDS))}")
    try:
        return _RULE.validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise parameter_invalid(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
