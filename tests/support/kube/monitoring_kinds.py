"""Definitions of the Prometheus operator's kinds, as small as the tests need them."""

from __future__ import annotations

from typing import Any

#: API group of the kinds.
GROUP = "monitoring.coreos.com"
#: Anything, for what no test looks into.
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
_TEXT = {"type": "string"}
#: The part of a PodMonitor that we fill in, with the names and patterns of the real one; other fields are dropped.
_POD_MONITOR = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["selector"],
            "properties": {
                "selector": {"type": "object", "properties": {"matchLabels": _STRINGS}},
                "namespaceSelector": _ANY,
                "podMetricsEndpoints": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "port": _TEXT,
                            "path": _TEXT,
                            "interval": {"type": "string", "pattern": "^(0|(([0-9]+)(ms|s|m|h|d|w|y))+)$"},
                            "relabelings": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "sourceLabels": {"type": "array", "items": _TEXT},
                                        "targetLabel": _TEXT,
                                    },
                                },
                            },
                        },
                    },
                },
            },
        }
    },
}


def definition(kind: str) -> dict[str, Any]:
    """The definition of a kind; except a PodMonitor it takes any object."""
    plural = kind.lower() + "s"
    schema = _POD_MONITOR if kind == "PodMonitor" else _ANY
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
