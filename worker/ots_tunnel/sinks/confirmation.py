"""Confirmations: the word of a sink that the records of a batch are stored, given later than it took them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ots_tunnel.errors import SinkError

#: Ends when every record of a batch is stored; raises what `Deferred.take` raises. The pipeline may cancel it.
Confirmation = asyncio.Future[None]


def confirmed() -> Confirmation:
    """A confirmation that has ended: every record is stored."""
    confirmation: Confirmation = asyncio.get_running_loop().create_future()
    confirmation.set_result(None)
    return confirmation


def all_confirmed(confirmations: Sequence[Confirmation]) -> Confirmation:
    """One confirmation for all of `confirmations`; it fails with the first failure.

    It ends in the round of the loop after the last of them, in whatever order they end.
    """
    confirmations = tuple(dict.fromkeys(confirmations))  # pages that are in one file have one
    if len(confirmations) == 1:
        return confirmations[0]
    if all(is_stored(confirmation) for confirmation in confirmations):
        return confirmed()
    whole: Confirmation = asyncio.get_running_loop().create_future()

    def settle(ended: Confirmation) -> None:
        error = None if ended.cancelled() else ended.exception()
        if whole.done():
            return
        if error is not None:
            whole.set_exception(error)
        elif ended.cancelled():
            whole.cancel()
        elif all(confirmation.done() for confirmation in confirmations):
            whole.set_result(None)

    for confirmation in confirmations:
        confirmation.add_done_callback(settle)
    return whole


async def until_stored(confirmations: Sequence[Confirmation], given_up: str) -> None:
    """Wait for confirmations, which go on where this is cancelled.

    Args:
        given_up: the message where one was cancelled.

    Raises:
        SinkError: one was given up. SinkRejected and others: why one cannot be stored.
    """
    if confirmations:
        await asyncio.wait(confirmations)
    for confirmation in confirmations:
        if confirmation.cancelled():
            raise SinkError(given_up)
        confirmation.result()


def is_stored(confirmation: Confirmation) -> bool:
    """Whether a confirmation has ended well."""
    return confirmation.done() and not confirmation.cancelled() and confirmation.exception() is None
