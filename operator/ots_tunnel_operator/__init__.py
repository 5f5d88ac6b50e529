"""Kubernetes operator of TablestoreTunnel objects, with one level-based loop per object (docs/architecture.md 6)."""

from __future__ import annotations

#: API group of the custom resource.
GROUP = "ots-tunnel.dev"
#: Version of the custom resource that is served and stored.
VERSION = "v1alpha1"
#: Plural name of the custom resource, as in URLs.
PLURAL = "tablestoretunnels"
#: Singular name of the custom resource.
SINGULAR = "tablestoretunnel"
#: Kind of the custom resource.
KIND = "TablestoreTunnel"
#: Value of `apiVersion` in objects and owner references.
API_VERSION = f"{GROUP}/{VERSION}"
