"""Answers of the API server: its objects, the lines of a watch, refusals, and the pause that it asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping

import aiohttp

from ots_tunnel_operator.kube.cluster import Change
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import Manifest


def pause_of(answer: aiohttp.ClientResponse) -> float | None:
    """Seconds of the header Retry-After of a refusal; None without one."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if answer.status >= 400 and text.isdecimal() else None


def cut_off(answer: aiohttp.ClientResponse) -> None:
    """End an answer that may not be complete, and its connection at once.

    `close` alone would begin TLS's farewell, which lasts until the API server has said its own: up to half a minute, in
    which nobody owns the connection any more.
    """
    if answer.connection is not None and answer.connection.transport is not None:
        answer.connection.transport.abort()
    answer.close()


def change_of(line: bytes, call: str) -> Change:
    """One line of a watch; a line that reports an error is raised."""
    event = json.loads(line)
    if event["type"] == "ERROR":
        status = event["object"]
        reason, message = str(status.get("reason") or "Error"), str(status.get("message") or call)
        raise KubeError(int(status.get("code") or 0), reason, message)
    return Change(event["type"], event["object"])


def document_of(status: int, data: bytes, call: str) -> Manifest:
    """The object in an answer's body.

    Args:
        call: method and path, for messages.

    Raises:
        KubeError: the status is a refusal; KindMissing where nothing of the kind is served.
    """
    try:
        document = json.loads(data) if data else {}
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {"message": data[:200].decode(errors="replace")}
    if status >= 400:
        refusal = KindMissing if status == 404 and not _names_an_object(document) else KubeError
        raise refusal(status, str(document.get("reason") or status), str(document.get("message") or call))
    return document


def _names_an_object(document: Manifest) -> bool:
    """Whether a 404 is about one object: its `details` name it; where nothing of the kind is served, they do not."""
    details = document.get("details")
    return isinstance(details, Mapping) and bool(details.get("name"))
