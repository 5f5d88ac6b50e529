"""The Spark operator's schema of a SparkApplication, what it would drop, and how golden files are written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.lacking import lack

CACHE = Path(os.environ.get("OTS_TUNNEL_CACHE") or Path.home() / ".cache" / "ots-tunnel")
CRD = CACHE / "spark-operator-chart" / "crds" / "sparkoperator.k8s.io_sparkapplications.yaml"


class Readable(yaml.SafeDumper):
    """Writes texts of several lines as block literals, and repeats equal lists instead of using aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


Readable.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


@pytest.fixture(scope="module")
def crd_schema() -> Any:
    if not CRD.exists():
        lack("kubernetes", f"{CRD} is not there: tests/cluster/build.sh fetches the Spark operator's chart")
    document = yaml.load(CRD.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    version = next(item for item in document["spec"]["versions"] if item["name"] == "v1beta2")
    return version["schema"]["openAPIV3Schema"]


def pruned(value: Any, schema: Any, path: str) -> Any:
    """Paths that the API server would drop silently."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(value, dict):
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if inner is None:
                yield f"{path}.{key}"
            else:
                yield from pruned(item, inner, f"{path}.{key}")
    if isinstance(value, list):
        for item in value:
            yield from pruned(item, schema["items"], f"{path}[]")
