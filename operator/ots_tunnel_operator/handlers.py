"""Registrations with kopf, and nothing else (docs/architecture.md 6.1).

A daemon per object runs its loop, which the operator's own watches wake (`runtime`). Deletion is a handler, because
kopf starts no daemon for an object that is being deleted. kopf writes the finalizer to a new object, nothing
afterwards (`kube.kopf_copy`).
"""

from __future__ import annotations

import asyncio
from typing import Any

import kopf

from ots_tunnel_operator import GROUP, PLURAL, VERSION, names
from ots_tunnel_operator.kube.kopf_copy import MetadataAlone
from ots_tunnel_operator.runtime import Runtime
from ots_tunnel_operator.server import Health

#: Longest life of a watch as the API server is asked for it, and its client-side limit, seconds.
WATCH_SECONDS = 300
WATCH_CLIENT_SECONDS = 330
#: Seconds until kopf lists again after a watch whose version was too old.
RECONNECT_SECONDS = 1.0
#: Objects of one page of the list, which are in memory at once.
PAGE = 100
#: Longest connection attempt and longest request, seconds.
CONNECT_SECONDS = 10
REQUEST_SECONDS = 30
#: Seconds until a loop that does not notice the deletion of its object is cancelled, which is harmless.
GRACE_SECONDS = 1
#: Seconds for which kopf waits for a cancelled loop.
CANCEL_SECONDS = 10
#: Longest end of the process, seconds; below the grace period of its pod (30 s).
EXIT_SECONDS = 20


def configure(settings: kopf.OperatorSettings, *, clusterwide: bool) -> None:
    """Settings that keep kopf from writing, from blocking and from missing events (docs/architecture.md 6.1)."""
    settings.persistence.finalizer = names.FINALIZER
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = MetadataAlone()
    settings.posting.enabled = False
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.client_timeout = WATCH_CLIENT_SECONDS
    # by default, kopf has the whole list in memory at once
    settings.watching.chunk_size = PAGE
    settings.watching.connect_timeout = CONNECT_SECONDS
    # by default, kopf lists ten times a second where the API server answers every watch with 410
    settings.watching.reconnect_backoff = RECONNECT_SECONDS
    settings.networking.request_timeout = REQUEST_SECONDS
    settings.queueing.worker_limit = None
    settings.process.ultimate_exiting_timeout = EXIT_SECONDS
    settings.scanning.disabled = not clusterwide


def register(
    runtime: Runtime, health: Health, *, clusterwide: bool, stop: asyncio.Event | None = None
) -> kopf.OperatorRegistry:
    """Register every handler; `stop` is the flag that ends kopf."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings, clusterwide=clusterwide)
        await runtime.open()
        health.ready = True

    # kopf would repeat a failed clean-up after a minute, and the process would end only then
    @kopf.on.cleanup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
    async def clean_up(**_: Any) -> None:
        await runtime.close()
        if stop is not None:
            # kopf waits 5 s for its own task that waits for this flag
            stop.set()

    @kopf.on.login(registry=registry)
    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)

    _register_objects(registry, runtime)
    return registry


def _register_objects(registry: kopf.OperatorRegistry, runtime: Runtime) -> None:
    @kopf.daemon(
        GROUP,
        VERSION,
        PLURAL,
        id="loop",
        registry=registry,
        cancellation_backoff=GRACE_SECONDS,
        cancellation_timeout=CANCEL_SECONDS,
    )
    async def loop(namespace: str | None, name: str, uid: str, **_: Any) -> None:
        await run_loop(runtime, namespace or "", name, uid)

    @kopf.on.delete(GROUP, VERSION, PLURAL, id="delete", registry=registry)
    async def delete(namespace: str | None, name: str, uid: str, **_: Any) -> None:
        await run_deletion(runtime, namespace or "", name, uid)


async def run_loop(runtime: Runtime, namespace: str, name: str, uid: str) -> None:
    """Run the loop of an object. kopf cancels it with the object, and may begin it when the object is gone."""
    cache = runtime.cache(uid, namespace, name)
    try:
        await asyncio.sleep(runtime.first_pause(namespace, name))
        await runtime.reconciler().run(namespace, name, cache)
    except asyncio.CancelledError:
        # its deletion, which may be carried out already, may take longer than the liveness probe waits
        runtime.ended(uid, namespace, name)
        raise


async def run_deletion(runtime: Runtime, namespace: str, name: str, uid: str) -> None:
    """Carry out the deletion of an object and release it; kopf runs it again where it still waits for the loop."""
    await runtime.deleter().finish(namespace, name, runtime.deleted_cache(uid))
    await runtime.forget(uid, namespace, name)
