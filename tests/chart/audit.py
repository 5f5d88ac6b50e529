"""The API server's own record of what an account did: rights used, and calls refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chart.conftest import Right

POLICY = Path(__file__).parent / "audit-policy.yaml"
#: What the server says while it learns the kinds of owners anew, every 30 s; it refuses everybody then.
LEARNING = "cannot find RESTMapping"


@dataclass(frozen=True)
class Call:
    """One call as the API server has authorized it."""

    right: Right
    namespace: str
    name: str
    code: int
    allowed: bool
    message: str = ""
    """Of a refusal."""

    def __str__(self) -> str:
        group, resource, verb = self.right
        place = "/".join(filter(None, (self.namespace, self.name)))
        return f"{verb} {resource}{f'.{group}' if group else ''} {place}: {self.code}"


def calls(log: Path, user: str) -> Iterator[Call]:
    """The calls of a user about resources, in order; other paths, such as those of discovery, are left out."""
    for line in log.read_text().splitlines():
        entry: Mapping[str, Any] = json.loads(line)
        reference = entry.get("objectRef")
        if entry["user"]["username"] != user or reference is None or "resource" not in reference:
            continue
        resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
        yield Call(
            (reference.get("apiGroup", ""), resource, entry["verb"]),
            reference.get("namespace", ""),
            reference.get("name", ""),
            entry.get("responseStatus", {}).get("code", 0),
            entry.get("annotations", {}).get("authorization.k8s.io/decision") == "allow",
            entry.get("responseStatus", {}).get("message", ""),
        )


def used(found: list[Call]) -> set[Right]:
    """The rights that calls have used; a server-side apply that creates an object also uses the right to create."""
    rights = {call.right for call in found if call.allowed and call.code != 403}
    created = {(*call.right[:2], "create") for call in found if call.right[2] == "patch" and call.code == 201}
    return rights | created


def refused(found: list[Call]) -> list[str]:
    """The calls that were refused for want of a right."""
    refusals = [call for call in found if not call.allowed or call.code == 403]
    return [str(call) for call in refusals if not call.allowed or LEARNING not in call.message]


def reasons(found: list[Call]) -> str:
    """Why calls were refused, as the server has said it."""
    return "\n".join(f"{call}: {call.message}" for call in found if call.code == 403)
