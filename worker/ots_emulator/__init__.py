"""An emulator of Tablestore and its Tunnel Service for unmodified clients.

async with Emulator() as emulator:
    ...  # emulator.endpoint, emulator.handle(request)

with Emulator() as emulator:
    ...  # the same for code without an event loop; its methods run in its thread: emulator.call("split", ...)
"""

from __future__ import annotations

from ots_emulator.clock import Clock, ManualClock, SystemClock
from ots_emulator.emulator import Emulator
from ots_emulator.settings import Settings
from ots_emulator.thread import EmulatorThread

__all__ = ["Clock", "Emulator", "EmulatorThread", "ManualClock", "Settings", "SystemClock"]
