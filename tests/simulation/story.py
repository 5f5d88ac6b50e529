"""What happened, in order: time, actor, event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.machine.loop import VirtualLoop


class Story:
    """The events of one run."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._events: list[tuple[float, str, str, tuple[Any, ...]]] = []

    def __len__(self) -> int:
        return len(self._events)

    def tell(self, actor: str, text: str, *arguments: Any) -> None:
        """Add an event; the text is formatted when it is printed."""
        self._events.append((self._loop.now, actor, text, arguments))

    def lines(self) -> Iterator[str]:
        """The events as text."""
        for now, actor, text, arguments in self._events:
            minutes, seconds = divmod(now, 60)
            shown = text % arguments if arguments else text
            yield f"{minutes:3.0f}:{seconds:06.3f}  {actor:<12} {shown}"
