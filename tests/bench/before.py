"""Our worker beside that of an earlier commit: the same work, on one emulator, in turns.

    python -m tests.bench.before COMMIT [--only count column all copy] [--rounds N]

The commit gets a clone in the cache folder, set up by its own `make setup`. Its worker reads the documents of this
commit, so one that lacks a setting of them ends with the setting's name. Nothing is kept: goals that were stated for
another machine are scaled by what the commit before them takes on this one (docs/performance.md).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from tests.bench.bench_scene import Tunnel, bench_scene_on
from tests.bench.consumers import Lab
from tests.bench.contenders import Contender, Job, our_command
from tests.bench.start import MachineUnfit, say, two_cores
from tests.bench.throughput import WORKS, Throughput, Work
from tests.support.kube.api_server import cache

ROOT = Path(__file__).parents[2]
#: Our own modules that a run names, with the places that they have had.
MODULES = {
    "tests.bench.programs.milestone_worker": "tests.bench.milestone_worker",
    "tests.bench.programs.processors": "tests.bench.processors",
}


@dataclass(frozen=True)
class Earlier:
    """The folder of an earlier commit, set up."""

    folder: Path

    @classmethod
    def of(cls, commit: str) -> Earlier:
        """Clone a commit into the cache and set it up, unless it is there.

        Raises:
            CalledProcessError: there is no such commit, or its packages cannot be installed.
        """
        named = ("git", "-C", str(ROOT), "rev-parse", "--verify", f"{commit}^{{commit}}")
        digest = subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()
        folder = cache() / "commits" / digest[:12]
        if not (folder / "complete").exists():
            say(f"setting up {digest[:12]} in {folder} (a few minutes)")
            folder.mkdir(parents=True, exist_ok=True)
            for command in (
                ("git", "init", "--quiet"),
                ("git", "fetch", "--quiet", "--depth", "1", str(ROOT), digest),
                ("git", "checkout", "--quiet", "--force", "FETCH_HEAD"),
                ("make", "setup"),
            ):
                subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
            (folder / "complete").touch()
        return cls(folder)

    def command(self, command: list[str], document: Path) -> list[str]:
        """The command line of its worker, from that of ours; modules in a document get their place there."""
        path = f"PYTHONPATH={self.folder}:{self.folder / 'worker'}"
        document.write_text(self._placed(document.read_text()))
        words = (self._placed(word) for word in command[1:])
        return ["env", path, str(self.folder / ".venv" / "bin" / "python"), *words]

    def _placed(self, text: str) -> str:
        for now, before in MODULES.items():
            if not (self.folder / f"{now.replace('.', '/')}.py").exists():
                text = text.replace(now, before)
        return text


class BothPrograms:
    """Our worker, or the earlier one."""

    def __init__(self, earlier: Earlier) -> None:
        self.earlier = earlier
        self.is_earlier = False

    def command(self, contender: Contender, endpoint: str, tunnel: Tunnel, job: Job, folder: Path) -> list[str]:
        """The command line of the one that is chosen."""
        command = our_command(endpoint, tunnel, job, folder)
        return self.earlier.command(command, Path(command[-1])) if self.is_earlier else command


def main() -> int:
    """Measure in turns, print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("commit", help="the earlier one, as git names it")
    names = [work.name for work in WORKS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="what to measure (default all)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each; medians are shown (default 5)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    try:
        server_core, worker_core = two_cores()
        programs = BothPrograms(Earlier.of(options.commit))
    except MachineUnfit as reason:
        print(reason, file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"{options.commit}: {' '.join(error.cmd)} failed: {error.stderr or ''}", file=sys.stderr)
        return 2
    os.sched_setaffinity(0, (server_core,))
    works = tuple(replace(work, goals={}) for work in WORKS if work.name in options.only)
    found = asyncio.run(_measured(programs, works, options.rounds, server_core, worker_core))
    table = Table(title=f"Our worker beside that of {options.commit}", caption="CPU seconds per million rows")
    for header in ("work", "earlier", "now", "now / earlier"):
        table.add_column(header, justify="left" if header == "work" else "right")
    for work in works:
        earlier, now = (median(found[work.name, is_earlier]) for is_earlier in (True, False))
        table.add_row(work.words, f"{earlier:.2f}", f"{now:.2f}", f"{now / earlier:.2f}")
    Console(width=100).print(table)
    return 0


async def _measured(
    programs: BothPrograms, works: tuple[Work, ...], rounds: int, server_core: int, worker_core: int
) -> dict[tuple[str, bool], list[float]]:
    """CPU seconds per million rows of each run, by work and whether the earlier worker did it."""
    found: dict[tuple[str, bool], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        async with bench_scene_on(server_core) as scene:
            throughput = Throughput(Lab(scene, programs, Path(folder), worker_core), works, "", say)
            await throughput.prepare()
            for number in range(rounds):
                for work in works:
                    for programs.is_earlier in (True, False) if number % 2 else (False, True):
                        stretch = await throughput.run_once(work, Contender.OURS)
                        found[work.name, programs.is_earlier].append(stretch.cpu_per_million)
                        which = "earlier" if programs.is_earlier else "now"
                        say(f"round {number}: {work.name}, {which}: {stretch.cpu_per_million:.2f} CPU s")
    return found


if __name__ == "__main__":
    sys.exit(main())
