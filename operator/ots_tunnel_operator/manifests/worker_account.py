"""The account of an object's worker pods. Pure.

Workers do not call the API server, so no token is mounted. An account of their own keeps what others grant to the
account `default` away from them, holds the Secrets with which their image is pulled, and is what a cloud's identity
binds to. An object whose podTemplate names an account has none here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child

#: Fields of a pod that name its account; the API server takes the second one where the first is missing.
_ACCOUNT_FIELDS = ("serviceAccountName", "serviceAccount")


def has_own_account(obj: TablestoreTunnel) -> bool:
    """Whether the workers run under the account that the operator makes for them."""
    spec = obj.spec.worker_settings.pod_template.get("spec")
    # the API server does not validate templates, so anything may be in them
    return not (isinstance(spec, Mapping) and any(field in spec for field in _ACCOUNT_FIELDS))


def service_account(obj: TablestoreTunnel, pull_secrets: Sequence[str] = ()) -> Manifest:
    """Build ServiceAccount `<name>-workers`; `pull_secrets` are names of Secrets in the object's namespace."""
    manifest = child(obj, "v1", "ServiceAccount", names.workers_name(obj.name), names.ROLE_WORKER)
    return manifest | {"automountServiceAccountToken": False} | image_secrets(pull_secrets)


def image_secrets(names_of_secrets: Sequence[str]) -> Manifest:
    """The part of an account with which the images of its pods are pulled; nothing without a Secret."""
    return {"imagePullSecrets": [{"name": name} for name in names_of_secrets]} if names_of_secrets else {}
