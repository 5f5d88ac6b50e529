"""The operator's own client of the Kubernetes API, answered by the model instead of by a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ots_tunnel_operator.kube.client import Kube, KubeError
from ots_tunnel_operator.kube.kinds import Manifest
from tests.simulation.apiserver.api import Api, Request
from tests.simulation.apiserver.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one request.

    Args:
        before: seconds until the server sees it.
        after: seconds until the answer arrives.
        refusal: answered in place of the request's effect.
        is_lost: whether the answer never arrives, although the request took effect.
        versions_behind: by how much a read of one object is out of date.
    """

    before: float = 0.0
    after: float = 0.0
    refusal: Refusal | None = None
    is_lost: bool = False
    versions_behind: int = 0


class ModelKube(Kube):
    """`Kube` over the model.

    Args:
        fate: decides what becomes of a request.
    """

    def __init__(self, api: Api, fate: Callable[[Request], Fate] = lambda request: Fate()) -> None:
        self._api = api
        self._fate = fate

    async def close(self) -> None:
        """Nothing is open."""

    async def _call(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> Manifest:
        request = Request(method, path, body, query or {}, content)
        fate = self._fate(request)
        await asyncio.sleep(fate.before)
        if fate.refusal is not None:
            raise _error(fate.refusal)
        behind = fate.versions_behind
        try:
            answer = self._api.call(request, version=self._api.store.version - behind if behind else None)
        except Refusal as refusal:
            await asyncio.sleep(fate.after)
            raise _error(refusal) from refusal
        await asyncio.sleep(fate.after)
        if fate.is_lost:
            raise KubeError(0, "TimeoutError", f"{method} {path}: no answer")
        return answer


def _error(refusal: Refusal) -> KubeError:
    return KubeError(refusal.status, refusal.reason, refusal.message)
