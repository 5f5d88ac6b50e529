"""Whether a real API server takes an object, through kubectl."""

from __future__ import annotations

import json
from typing import Any

from tests.support.kube.api_server import ApiServer


def refusal(api: ApiServer, document: dict[str, Any]) -> str:
    done = api.kubectl("create", "--dry-run=server", "-f", "-", document=document)
    assert done.returncode != 0, f"accepted: {done.stdout}"
    return done.stderr


def accepted(api: ApiServer, document: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(
        api.must("create", "--dry-run=server", "-o", "json", "-f", "-", document=document)
    )
    return result
