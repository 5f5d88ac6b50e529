"""The kinds of stories that a campaign of the simulation can be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Kind of stories to the prefixes of their seeds, which come up in turn.
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "all": ("", "fleet:", "files:", "fleet:", "replicate:", "fleet:", "spark:"),
    "region": ("",),
    "fleet": ("fleet:",),
    "files": ("files:",),
    "replicate": ("replicate:",),
    "spark": ("spark:",),
    "replicas": ("replicas:",),
    "scaling": ("scaling:",),
    "sleeping": ("sleeping:",),
    "leases": ("leases:",),
}
