"""What `helm test` looks at, on API servers and operators that are in order, or not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ots_tunnel_operator.installation import Finding, check_installation
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest

ESTABLISHED: Manifest = {"status": {"conditions": [{"type": "Established", "status": "True"}]}}
INVALID = KubeError(422, "Invalid", "sink: exactly one member is needed")


class Server:
    """An API server with one definition, which refuses objects with two sinks."""

    def __init__(self, definition: Manifest | KubeError | None = ESTABLISHED, **refusals: KubeError | None) -> None:
        self._definition = definition
        self._refusals: dict[str, KubeError | None] = {"good": None, "bad": INVALID, **refusals}
        self.stored = 0

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        assert (kind.kind, namespace, name) == ("CustomResourceDefinition", "", "tablestoretunnels.ots-tunnel.dev")
        if isinstance(self._definition, KubeError):
            raise self._definition
        return self._definition

    async def create(self, kind: Kind, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        self.stored += not dry_run
        refusal = self._refusals["bad" if len(manifest["spec"]["sink"]) > 1 else "good"]
        if refusal is not None:
            raise refusal
        return manifest


async def wrong(server: Any, url: str = "") -> list[str]:
    findings = await check_installation(server, "ots", url)
    assert server.stored == 0
    return [str(finding) for finding in findings if finding.wrong]


async def test_an_installation_in_order_has_no_finding() -> None:
    assert await wrong(Server()) == []
    assert str(Finding("it works")) == "ok      it works"


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (Server(None), "it does not exist: install it with crds.enabled=true"),
        (Server({"status": {}}), "Established is absent: no message"),
        (
            Server({"status": {"conditions": [{"type": "Established", "status": "False", "message": "names"}]}}),
            "Established is False: names",
        ),
        (Server(KubeError(403, "Forbidden", "no")), "the definition is established: Forbidden: no"),
        (Server(good=KindMissing(404, "NotFound", "no kind")), "an object is accepted: NotFound: no kind: apply the"),
        (Server(bad=None), "an object with two sinks is refused: it was accepted"),
        (Server(bad=KubeError(403, "Forbidden", "no")), "an object with two sinks is refused: Forbidden: no"),
    ],
)
async def test_a_finding_says_what_is_wrong(server: Server, said: str) -> None:
    (found,) = await wrong(server)

    assert said in found
    assert found.startswith("FAILED  ")


@contextmanager
def operator(status: int) -> Iterator[str]:
    """Something that answers every path with a status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"because")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def test_an_operator_that_answers_is_in_order() -> None:
    with operator(200) as url:
        assert await wrong(Server(), url) == []


async def test_an_operator_that_does_not_answer_is_named() -> None:
    with operator(503) as url:
        found = await wrong(Server(), url)
    assert [line.partition(": ")[0] for line in found] == [
        f"FAILED  the operator answers {path}" for path in ("/readyz", "/livez", "/metrics")
    ]
    assert "HTTP 503: because" in found[0]

    assert "look at the operator's pods" in (await wrong(Server(), url))[0]
