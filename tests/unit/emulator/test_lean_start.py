"""What takes much memory is loaded when it is used."""

from __future__ import annotations

import subprocess
import sys

from tests.support.programs.processes import bare_environment, unmeasured

#: Loaded with a data directory; with changed settings or faults; with filters by expressions.
LARGE = {"sqlite3", "pydantic", "re2"}


def test_an_emulator_starts_without_what_few_of_them_need() -> None:
    code = "import sys, ots_emulator.__main__ as program; program.Emulator(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=unmeasured(bare_environment()),  # what measures coverage loads SQLite itself
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert not LARGE & set(done.stdout.split())
