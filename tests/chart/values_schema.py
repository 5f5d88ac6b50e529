"""Write the part of the chart's values.schema.json that is about types of Kubernetes.

    python -m tests.chart.values_schema [--check]

The rest of the file is written by hand. It refers to a type as `#/definitions/io.k8s.api.core.v1.Toleration`; this
program adds the definitions, so that a misspelt field is refused at any depth. With `--check` nothing is written, and
the exit code is 1 when the file is out of date.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from tests.support.kube.api_server import ROOT

SCHEMA = ROOT / "charts" / "ots-tunnel-operator" / "values.schema.json"
#: Beginning of the names of the types.
KUBERNETES = "io.k8s."
#: Fields come and go with versions; an unknown one is refused, so it is a recent version.
VERSION = "v1.34.0-local-strict"
_REFERENCE = "#/definitions/"


def types() -> Mapping[str, Any]:
    """The types of Kubernetes by name."""
    source = files("kubernetes_validate") / "kubernetes-json-schema" / VERSION / "_definitions.json"
    found: dict[str, Any] = json.loads(source.read_text())["$defs"]
    return found


def references(schema: Any) -> Iterator[str]:
    """Names of the types of Kubernetes to which a schema refers."""
    if isinstance(schema, Mapping):
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        if name.startswith(KUBERNETES):
            yield name
    for value in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ():
        yield from references(value)


def slim(schema: Any) -> Any:
    """The schema without descriptions, extensions and formats, with references as draft 7 has them."""
    if isinstance(schema, list):
        return [slim(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    if "$ref" in schema:
        return {"$ref": _REFERENCE + schema["$ref"].rpartition("/")[2]}
    found = {key: value for key, value in schema.items() if key not in ("description", "format", "default")}
    found = {key: value for key, value in found.items() if not key.startswith("x-kubernetes")}
    if "properties" in found:
        # names of fields are no keywords
        properties = {name: slim(value) for name, value in found.pop("properties").items()}
        found = {key: slim(value) for key, value in found.items()}
        return found | {"properties": properties, "additionalProperties": False}
    return {key: slim(value) for key, value in found.items()}


def complete(text: str) -> str:
    """The file with exactly the types to which it refers, each on a line of its own."""
    document = json.loads(text)
    own = {name: value for name, value in document["definitions"].items() if not name.startswith(KUBERNETES)}
    known, wanted = types(), set(references({**document, "definitions": own}))
    found: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        found[name] = slim(known[name])
        wanted |= set(references(found[name])) - found.keys()
    lines = (f"    {json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    begin, end = text.index('  "definitions": {\n'), text.index('\n  },\n  "properties": {')
    hand = text[begin:end].split(f'\n    "{KUBERNETES}', maxsplit=1)[0].rstrip(",\n")
    return text[:begin] + ",\n".join((hand, *lines)) + text[end:]


def main() -> int:
    """Write the file, or with `--check` only compare it."""
    parser = argparse.ArgumentParser(description="Write the Kubernetes types of the chart's schema.")
    parser.add_argument("--check", action="store_true", help="only compare; exit with 1 when the file is out of date")
    check = parser.parse_args().check
    text = SCHEMA.read_text()
    new = complete(text)
    if new == text:
        return 0
    print(f"{SCHEMA.relative_to(ROOT)} is out of date: run `make generate`" if check else f"{SCHEMA.name} written")
    if not check:
        SCHEMA.write_text(new)
    return int(check)


if __name__ == "__main__":
    sys.exit(main())
