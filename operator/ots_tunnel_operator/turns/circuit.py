"""What is known of an instance, or of a part of one, that does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ots_tunnel.errors import TransportError, TunnelError


class Circuit:
    """Lets calls through, or none but a probe while what they are about is silent.

    Attributes:
        failure: why the last call had no answer; None once there is one.
        answered_at: time of the last answer, on the running loop's clock; before the first one -inf.
    """

    def __init__(self) -> None:
        self.failure: TransportError | None = None
        self.answered_at = float("-inf")
        self._answers = 0
        self._probe: asyncio.Event | None = None

    @property
    def admits(self) -> bool:
        """Whether a call may be made now, if only as the probe."""
        return self.failure is None or self._probe is None

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Let a call through, and learn from its end; only where `admits`."""
        probe = None if self.failure is None else asyncio.Event()
        self._probe = probe or self._probe
        before = self._answers
        try:
            yield
        except (TransportError, TimeoutError, OSError) as error:
            if self._answers == before:
                self.failure = error if isinstance(error, TransportError) else TransportError(str(error))
            raise
        except TunnelError:
            self._answered()
            raise
        else:
            self._answered()
        finally:
            if probe is not None:
                self._probe = None
                probe.set()

    async def probed(self, seconds: float) -> None:
        """Await the probe that is under way, if there is one.

        Args:
            seconds: for which it is awaited.

        Raises:
            TransportError: it had no answer, or none in this time.
        """
        if self._probe is None:
            return
        failure, probe = self.failure, self._probe
        try:
            async with asyncio.timeout(seconds):
                await probe.wait()
        except TimeoutError:
            self.check()
        # the failure of before: the probe was cancelled, which says nothing
        if self.failure is not failure:
            self.check()

    def check(self) -> None:
        """Raise what is known of the silence.

        Raises:
            TransportError: the last call had no answer.
        """
        if self.failure is not None:
            # a new error: one that is raised again and again would keep every traceback
            raise type(self.failure)(str(self.failure))

    def _answered(self) -> None:
        self._answers += 1
        self.answered_at = asyncio.get_running_loop().time()
        self.failure = None
