"""Whether the API server takes the pods of workers with the user's part of their template (`workers.podTemplate`), or
with another template than those that run.

The CRD cannot tell: any version of Kubernetes has fields of its own, and policies of a cluster forbid some, or the
image of a release. So the rendered Deployment is sent as a dry run before anything of it is applied: what runs keeps
its settings, and the status has the API server's words.

It is asked once for a template. Consent is kept while the process lives; a Deployment that is as rendered needs none. A
refusal is repeated without asking for AGAIN_SECONDS: a policy may change, and then nothing of the object does.
"""

from __future__ import annotations

import hashlib
import json

from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.drift import is_current, stamp, stamped
from ots_tunnel_operator.kube.errors import REFUSALS, KubeError
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.loop_cache import LoopCache, Trial

#: Seconds after which a template that was refused is tried again.
AGAIN_SECONDS = 300.0
#: Begin of the words about a caller who lacks a right, behind the name of the object: they are not about the template.
_NO_RIGHT = 'is forbidden: User "'
#: What a server-side apply says of a field that no template has, or of a value of another type. It comes as an error of
#: the API server itself (500).
_NOT_TYPED = "failed to create typed patch object"


async def try_template(kube: Cluster, manifest: Manifest, existing: Manifest | None, cache: LoopCache) -> str:
    """The API server's words about why it does not take a Deployment; empty where it does.

    It is not asked where the answer for the pod template is known.

    Args:
        manifest: the rendered Deployment.
        existing: the one that is there, which belongs to the object; None without one.
        cache: of the object's loop.

    Raises:
        KubeError: it has not judged the template.
    """
    sent = stamped(manifest)
    template = _hash(manifest)
    known = cache.trial
    is_fresh = known.template == template and (not known.refusal or cache.time - known.time < AGAIN_SECONDS)
    if not is_fresh and not _is_applied(sent, existing, cache):
        known = cache.trial = Trial(template, cache.time, await _refusal(kube, sent))
    return known.refusal if known.template == template else ""


def _hash(manifest: Manifest) -> str:
    """Hash of the pod template: a change of the number of workers asks nothing."""
    text = json.dumps(manifest["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _is_applied(sent: Manifest, existing: Manifest | None, cache: LoopCache) -> bool:
    """Whether the API server has taken exactly this Deployment before."""
    if existing is None:
        return False
    applied, accepted = cache.applied.get((sent["kind"], sent["metadata"]["name"]), ("", ""))
    return is_current(existing, sent, accepted if applied == stamp(sent) else "")


async def _refusal(kube: Cluster, sent: Manifest) -> str:
    """The API server's words about what it refuses; empty where it refuses nothing."""
    try:
        await kube.try_apply(sent)
    except KubeError as error:
        is_about_template = error.status in REFUSALS and _NO_RIGHT not in error.message
        if not is_about_template and _NOT_TYPED not in error.message:
            raise
        return error.message
    return ""
