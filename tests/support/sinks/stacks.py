"""Everything that a document can put a sink behind: the stacks of middleware, by name."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.config import FileStoreConfig
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.sinks.middleware.base import behind, deferred
from ots_tunnel.sinks.middleware.dead_letters import open_dead_letters
from ots_tunnel.sinks.middleware.permanent_errors import LetteringSink, Tolerant
from tests.support.sink_kit import Destination, NewSink, document_of

#: What each member of `delivery` is here: rows per second, columns, refused records.
PACE = {"rateLimit": {"rowsPerSecond": 1000}}
TRANSFORM = {"columns": {"exclude": ["gone"], "rename": {"padding": "filler"}}}
#: Members of the document's `sink` that refuse single records, as `files` does with columns.
REFUSING = {"tablestore", "http", "kafka"}
POLICIES = ("Fail", "Skip", "DeadLetter")
#: Seconds' worth of rows in a slice: ten records, so that pages are cut.
SLICE_SECONDS = 0.01


def stacked(destination: Destination, folder: Path, paced: bool, transformed: bool, policy: str) -> NewSink:
    """Make the sink of a document behind a stack.

    A document asks for a policy only where the sink refuses single records; another sink is put behind it by hand.

    Args:
        folder: for secrets and dead letters.
    """
    dead = {"url": (folder / "dead").as_uri()}
    chosen: dict[str, Any] = {**(PACE if paced else {}), **(TRANSFORM if transformed else {})}
    if not REFUSING & destination.section.keys() and "columns" not in destination.section.get("files", {}):
        config = document_of(destination, folder, chosen)
        letters = FileStoreConfig.model_validate(dead)
        match policy:
            case "DeadLetter":
                return lambda: LetteringSink(deferred(open_sink(config)), open_dead_letters(config, letters))
            case "Skip":
                return lambda: behind(Tolerant(), open_sink(config))
            case _:
                return lambda: open_sink(config)
    chosen |= {"onPermanentError": policy} | ({"deadLetter": {"files": dead}} if policy == "DeadLetter" else {})
    asked = document_of(destination, folder, chosen)
    return lambda: open_sink(asked)


def _parameter(paced: bool, transformed: bool, policy: str) -> Any:
    names = [name for name, chosen in (("paced", paced), ("transformed", transformed)) if chosen]
    usual = (paced, transformed, policy) in ((True, True, "DeadLetter"), (True, False, "Fail"))
    marks = () if usual else (pytest.mark.long,)
    return pytest.param(paced, transformed, policy, id=" ".join([*names, policy]), marks=marks)


#: Arguments of `stacked`; two of them belong to every run, the others to the long one.
STACKS = [_parameter(*chosen) for chosen in product((False, True), (False, True), POLICIES)]
EVERY_STACK = pytest.mark.parametrize(("paced", "transformed", "policy"), STACKS)
