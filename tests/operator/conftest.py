"""Fixtures of the operator's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from ots_emulator import Emulator
from tests.operator.scenes.pass_scene import PassScene, fill, open_scene
from tests.support.kube.api_server import ROOT, ApiServer, cache, missing_program, running_api_server
from tests.support.lacking import lack


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Start a real API server with our CRD."""
    if reason := missing_program("kubeone", "kubectl"):
        lack("kubernetes", reason)
    with running_api_server(tmp_path_factory.mktemp("api") / "server") as server:
        server.install_definitions(ROOT / "crds")
        yield server


@pytest.fixture(scope="module")
def spark_api_server(api_server: ApiServer) -> Iterator[ApiServer]:
    """The API server with the kind SparkApplication."""
    definition = cache() / "spark-operator-chart" / "crds" / "sparkoperator.k8s.io_sparkapplications.yaml"
    if not definition.exists():
        lack("kubernetes", f"{definition.name} is not there (tests/cluster/build.sh brings the chart)")
    api_server.install_definitions(definition)
    yield api_server
    # other tests need a cluster without a Spark operator
    api_server.must("delete", "-f", str(definition), "--timeout=60s")


@pytest.fixture
async def flights_scene(api_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PassScene]:
    """Open a scene with a table of flights, in a namespace of its own."""
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    with Emulator() as emulator:
        fill(emulator, "flights")
        async with open_scene(api_server, emulator) as scene:
            yield scene
