"""The operator of TablestoreTunnel objects: one level-based loop per object."""

from __future__ import annotations

#: API group of the custom resource.
GROUP = "ots-tunnel.dev"
#: The served and stored version of it.
VERSION = "v1alpha1"
#: Plural name, as in URLs.
PLURAL = "tablestoretunnels"
#: Singular name.
SINGULAR = "tablestoretunnel"
#: Kind of the objects.
KIND = "TablestoreTunnel"
#: What an object's or an owner reference's apiVersion says.
API_VERSION = f"{GROUP}/{VERSION}"
