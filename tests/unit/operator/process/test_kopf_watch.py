"""kopf's own endless watch, with an API server that puts errors into it or refuses it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import kopf
import pytest
from kopf._cogs.clients import errors, fetching, watching
from kopf._cogs.structs.references import Resource

from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel_operator import GROUP, PLURAL, VERSION
from ots_tunnel_operator.process import kopf_watch
from ots_tunnel_operator.process.kopf_watch import lasting_watch, outlast_errors_of_watches

OURS = Resource(GROUP, VERSION, PLURAL, namespaced=True)
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
ADDED = {"type": "ADDED", "object": {"metadata": {"uid": "1", "name": "orders", "resourceVersion": "7"}}}
BROKEN = {"type": "ERROR", "object": {"code": 500, "reason": "InternalError", "message": "etcd has no leader"}}


@pytest.fixture(autouse=True)
def patched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "infinite_watch", watching.infinite_watch)  # put back afterwards
    monkeypatch.setattr(kopf_watch, "RETRY", Backoff(0.001, 1.0, 0.001, 0.0))


def lists(monkeypatch: pytest.MonkeyPatch, refusals: list[Exception]) -> None:
    """Let kopf list no object, or be refused first."""

    async def fetch_objs(**_: Any) -> AsyncIterator[tuple[list[Any], str]]:
        if refusals:
            raise refusals.pop()
        yield [], "1"

    monkeypatch.setattr(fetching, "fetch_objs", fetch_objs)


def watches(monkeypatch: pytest.MonkeyPatch, *streams: list[dict[str, Any]]) -> None:
    """Let each watch of kopf have these events, the last one over and over."""
    left = list(streams)

    async def watch_objs(**_: Any) -> AsyncIterator[dict[str, Any]]:
        for event in left.pop(0) if len(left) > 1 else left[0]:
            yield event

    monkeypatch.setattr(watching, "watch_objs", watch_objs)


async def first_added(watch: Callable[..., AsyncIterator[Any]], resource: Resource = OURS) -> Any:
    """The first object that kopf learns of."""
    settings = kopf.OperatorSettings()
    settings.watching.reconnect_backoff = 0.001
    async with asyncio.timeout(30):
        async with contextlib.aclosing(watch(settings=settings, resource=resource, namespace=None)) as events:
            async for event in events:
                if not isinstance(event, watching.Bookmark):
                    return event["object"]
    return None


async def test_an_error_in_a_watch_does_not_end_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lists(monkeypatch, [])
    watches(monkeypatch, [BROKEN], [ADDED])
    outlast_errors_of_watches()

    assert await first_added(watching.infinite_watch) == ADDED["object"]
    (record,) = caplog.records
    assert (record.action, record.watch) == ("kopf_watch_failed", f"{PLURAL} in every namespace")
    assert "etcd has no leader" in record.error


@pytest.mark.parametrize("status", [403, 404, 500])
async def test_a_refused_list_is_asked_for_again(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    lists(monkeypatch, [errors.APIError("refused", status=status, headers={}) for _ in range(3)])
    watches(monkeypatch, [ADDED])
    outlast_errors_of_watches()

    assert await first_added(watching.infinite_watch) == ADDED["object"]


async def test_kopf_decides_about_a_right_that_it_lacks_on_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    lists(monkeypatch, [errors.APIForbiddenError("refused", status=403, headers={})])
    watches(monkeypatch, [ADDED])
    outlast_errors_of_watches()

    with pytest.raises(errors.APIForbiddenError):
        await first_added(watching.infinite_watch, DEFINITIONS)


async def test_what_is_no_error_of_a_watch_ends_it() -> None:
    async def watch(**_: Any) -> AsyncIterator[Any]:
        raise RuntimeError("a defect of kopf")
        yield

    with pytest.raises(RuntimeError, match="a defect of kopf"):
        await first_added(functools.partial(lasting_watch, watch))


async def test_errors_in_a_row_are_not_asked_in_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[int] = []

    class Counting:
        def delay(self, attempt: int, _: float) -> float:
            pauses.append(attempt)
            return 0.0

    monkeypatch.setattr(kopf_watch, "RETRY", Counting())
    lists(monkeypatch, [])
    watches(monkeypatch, [BROKEN], [BROKEN], [BROKEN], [ADDED])
    outlast_errors_of_watches()

    await first_added(watching.infinite_watch)

    assert pauses == [0, 1, 2]
