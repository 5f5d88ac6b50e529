"""The admin port: a page and its state, and the controls for tests; the data port has neither."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, fields
from functools import partial
from importlib.resources import files

from aiohttp import web

from ots_emulator.admin.own_page import own_page
from ots_emulator.admin.posted import check_range, document_of, number_in, optional_text_in, text_in
from ots_emulator.admin.state import Document, state_of
from ots_emulator.clock import LATEST
from ots_emulator.refusal import Refusal, parameter_invalid
from ots_emulator.server.descriptors import LastDescriptor
from ots_emulator.server.faults import FaultRule
from ots_emulator.service import Service
from ots_emulator.settings import RANGES

PAGE = files("ots_emulator.admin") / "page.html"
#: The page loads nothing from elsewhere, and it shows names chosen by clients: only its own script may run.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:",
    "Cache-Control": "no-store",
}
_RULE_FIELDS = frozenset(field.name for field in fields(FaultRule))


def admin_application(service: Service, descriptors: LastDescriptor, host: str) -> web.Application:
    """Return the application behind the admin port at `host`; every control is a method of the service."""

    def names() -> list[str]:
        return [host, *filter(None, map(str.strip, (service.settings.admin_names or "").split(",")))]

    async def healthz(request: web.Request) -> web.Response:
        if service.failure is not None:
            return web.Response(text=f"{service.failure}\n", status=503)
        return web.Response(text="ok\n")

    async def state(request: web.Request) -> web.Response:
        return web.json_response(state_of(service))

    async def calls(request: web.Request) -> web.Response:
        return web.json_response([call._asdict() for call in service.application.history.newest_first()])

    # read once: a call that opens a file fails where no descriptor is left
    page_body = PAGE.read_bytes()

    async def page(request: web.Request) -> web.Response:
        return web.Response(body=page_body, content_type="text/html", charset="utf-8", headers=_PAGE_HEADERS)

    async def faults(request: web.Request) -> web.Response:
        return web.json_response({"rules": [asdict(rule) for rule in service.faults.rules(service.clock.now())]})

    @web.middleware
    async def connected(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        descriptors.connected(request.transport)
        return await handler(request)

    application = web.Application(middlewares=[connected, _refusals, own_page(names)])
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/", page)
    application.router.add_get("/state", state)
    application.router.add_get("/calls", calls)
    application.router.add_get("/faults", faults)
    for path, control in _CONTROLS.items():
        application.router.add_post(path, _posted(service, partial(control, service)))
    return application


def _split(service: Service, document: Document) -> Document:
    parent, *children = service.split(
        text_in(document, "instance"), text_in(document, "table"), optional_text_in(document, "partition")
    )
    return {"parent": parent, "children": children}


def _merge(service: Service, document: Document) -> Document:
    *parents, child = service.merge(
        text_in(document, "instance"), text_in(document, "table"), optional_text_in(document, "partition")
    )
    return {"parents": parents, "child": child}


def _clock(service: Service, document: Document) -> Document:
    return {"time": service.advance_clock(number_in(document, "advance"))}


def _settings(service: Service, document: Document) -> Document:
    return asdict(service.change_settings(**document))


def _suspend(service: Service, document: Document) -> Document:
    service.suspend(text_in(document, "instance"), text_in(document, "tunnel"), text_in(document, "channel"))
    return {}


def _resume(service: Service, document: Document) -> Document:
    service.resume(text_in(document, "instance"), text_in(document, "tunnel"), text_in(document, "channel"))
    return {}


def _conflict(service: Service, document: Document) -> Document:
    instance, tunnel = text_in(document, "instance"), text_in(document, "tunnel")
    return {"sequence": service.conflict(instance, tunnel, text_in(document, "channel"))}


def _partitions(service: Service, document: Document) -> Document:
    count, (least, most) = document.get("count"), RANGES["partitions"]
    if isinstance(count, bool) or not isinstance(count, int) or not least <= count <= most:
        raise parameter_invalid(f"count: found {count!r}, allowed is a whole number from {least} to {most}")
    service.set_partitions(text_in(document, "instance"), text_in(document, "table"), count)
    return {"count": count}


def _expire_clients(service: Service, document: Document) -> Document:
    instance, tunnel = text_in(document, "instance"), text_in(document, "tunnel")
    return {"expired": service.expire_clients(instance, tunnel, optional_text_in(document, "client"))}


def _expire_tunnel(service: Service, document: Document) -> Document:
    service.expire_tunnel(text_in(document, "instance"), text_in(document, "tunnel"))
    return {}


def _rebalance(service: Service, document: Document) -> Document:
    service.rebalance(text_in(document, "instance"), text_in(document, "tunnel"), text_in(document, "channel"))
    return {}


def _trim(service: Service, document: Document) -> Document:
    service.trim(text_in(document, "instance"), text_in(document, "table"))
    return {}


def _faults(service: Service, document: Document) -> Document:
    if document.get("clear"):
        service.faults.clear()
    elif "unavailable" in document:
        seconds = number_in(document, "unavailable")
        check_range("unavailable", seconds, 0, LATEST)
        service.faults.unavailable(seconds, service.clock.now())
    else:
        service.faults.add(_rule(document))
    return {"rules": len(service.faults.rules(service.clock.now()))}


_CONTROLS: dict[str, Callable[[Service, Document], Document]] = {
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
    service: Service, control: Callable[[Document], Document]
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        document = await document_of(request)
        if service.failure is not None:
            raise Refusal("OTSInternalServerError", f"no more changes are taken: {service.failure}")
        answer = control(document)
        service.commit()
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


def _rule(document: Document) -> FaultRule:
    from pydantic import TypeAdapter, ValidationError  # takes time and memory, and few emulators have faults

    unknown = sorted(set(document) - _RULE_FIELDS)
    if unknown:
        raise parameter_invalid(f"{', '.join(unknown)}: unknown, a rule knows {', '.join(sorted(_RULE_FIELDS))}")
    try:
        rule = TypeAdapter(FaultRule).validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise parameter_invalid(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    check_range("latency", rule.latency, 0, LATEST)
    if rule.until is not None:
        check_range("until", rule.until, 0, LATEST)
    if rule.count is not None:
        check_range("count", rule.count, 1, LATEST)
    if rule.status is not None:
        check_range("status", rule.status, 200, 599)
    return rule
