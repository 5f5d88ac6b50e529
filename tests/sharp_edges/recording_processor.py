"""A user's callbacks that record their begin and end, and detect overlapping calls."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from ots_tunnel.model import FINISHED
from ots_tunnel.processor import ChannelContext, SimpleProcessorFactory
from ots_tunnel.sinks.python.sink import ManualProcessorSink, ProcessorSink
from tests.support.channel_scene import page

PAGES = {"t0": page(1, "t1", True), "t1": page(1, FINISHED)}
#: Short times for tests with threads, which do not follow virtual time: D is 0.1 s.
SHORT = {"interval": 0.1, "timeout": 0.4, "drain": 20}


@dataclass
class RecordingProcessor:
    """Records the begin and end of callbacks, and detects overlapping ones."""

    gate: threading.Event = field(default_factory=threading.Event)
    began: threading.Event = field(default_factory=threading.Event)
    calls: list[str] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    inside: int = 0
    overlapped: bool = False

    def enter(self, name: str) -> None:
        self.inside += 1
        self.overlapped |= self.inside > 1
        self.threads.add(threading.get_ident())
        self.calls.append(name)

    def initialize(self, context: ChannelContext) -> None:
        self.enter("initialize")
        self.inside -= 1

    def process(self, context: ChannelContext, records: object) -> None:
        self.enter("process")
        self.began.set()
        assert self.gate.wait(20)
        self.inside -= 1

    def shutdown(self, context: ChannelContext) -> None:
        self.enter("shutdown")
        self.inside -= 1

    def sink(self) -> ProcessorSink | ManualProcessorSink:
        factory = SimpleProcessorFactory(self.process, initialize=self.initialize, shutdown=self.shutdown)
        return patient(factory)


def patient(factory: SimpleProcessorFactory) -> ProcessorSink | ManualProcessorSink:
    """A sink that waits longer than any test, and does not end the process."""
    kind = ManualProcessorSink if factory.manual_checkpoints else ProcessorSink
    return kind(factory, patience=20, on_hang=lambda channel_id: None)
