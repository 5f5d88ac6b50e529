"""Fixtures of the operator's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kube.api_server import ROOT, ApiServer, missing_program, running_api_server


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Start a real API server with our CRD."""
    if reason := missing_program("kubeone", "kubectl"):
        pytest.skip(reason)
    with running_api_server(tmp_path_factory.mktemp("api") / "server") as server:
        server.install_definitions(ROOT / "crds")
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the test that mostly waits first: a second pytest process runs the others in the meantime."""
    items.sort(key=lambda item: item.path.name != "test_quiet.py")
