"""The test command: every stage in order, one summary at the end.

    python -m tests.suite [--long] [--only STAGE ...]

A stage is a command. The ones that need a Kubernetes API start it; where the machine does not allow the full
cluster, the tests that need it are skipped with the reason, and the summary counts them. What takes
one processor or waits for most of its time, an installation, the long simulation and the long scenarios, runs beside
the stages that do not wait for it; its output is shown at its end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

from tests.support.lacking import INSTALLED
from tests.support.suite.bytecode import compiling_once
from tests.support.suite.left_over import adopt_orphans, end_orphans
from tests.support.suite.outcome import Outcome, summary
from tests.support.suite.pressure import read_pressure

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "build" / "reports"
MEASURED = ROOT / "build" / "coverage"
HEAVY = "api or cluster or spark or leases or long"


@dataclass(frozen=True)
class Stage:
    """One command of the suite; `marks` makes it a pytest run."""

    name: str
    what: str
    commands: tuple[tuple[str, ...], ...] = ()
    marks: str | None = None
    folders: tuple[str, ...] = ()
    workers: int = 0
    timeout: int = 180
    #: Whether an interrupted run goes on where it was.
    is_resumed: bool = False
    #: Whether its tests measure coverage, their child processes included, in a run that ends with its gate.
    is_measured: bool = False
    #: Additional environment variables of its commands.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Whether exit code 2 of a command means that this machine lacks something: dependent tests are then skipped.
    may_lack: bool = False
    #: What the commands install, in their order: a test that then misses it fails (`tests.support.lacking`).
    installs: tuple[str, ...] = ()
    #: Whether the stages that follow begin beside it, until one that waits for it.
    is_beside: bool = False
    #: Stages that run beside others and have to end before this one begins.
    waits_for: tuple[str, ...] = ()


LINT = Stage(
    "lint",
    "lint, format, types, import contracts, generated files",
    (
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("mypy",),
        ("lint-imports",),
        ("deptry", "."),
        (sys.executable, "-m", "ots_tunnel_operator.api.crd", "--check"),
        (sys.executable, "-m", "tests.docs.fill", "--check"),
    ),
)
PACKAGES = ("java", "javac", "browser", "network")
PROGRAMS = Stage(
    "programs",
    "programs that the tests need besides Python: Java, a browser, a packet filter",
    tuple(("tests/cluster/packages.sh", group) for group in PACKAGES),
    may_lack=True,
    installs=PACKAGES,
)
_KUBERNETES = "kubernetes"
CLUSTER = Stage(
    _KUBERNETES,
    "programs and images of the local cluster (the first time about 15 minutes)",
    (
        ("tests/cluster/packages.sh", "node"),
        ("tests/cluster/build.sh",),
        ("tests/cluster/images.sh",),
    ),
    may_lack=True,
    installs=("containers", "kubernetes", "images"),
    is_beside=True,
)
FAST = Stage(
    "fast",
    "unit, golden, property, integration, the vendor's own clients",
    marks=f"not ({HEAVY})",
    # more than processors, because many tests wait: for heartbeats, time limits, and processes that they have killed
    workers=6,
    # a test may need ten seconds of a processor that it shares with others
    timeout=180,
    is_measured=True,
    waits_for=(_KUBERNETES,),
)
_VECTORS = tuple(str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests" / "golden").glob("test_*.py")))
#: The codec in Python is the reference for the compiled one, and runs where no compiler was available.
REFERENCE = Stage(
    "reference",
    "the codec in Python under the tests of the protocol",
    marks=f"not ({HEAVY})",
    # of the golden files only the vectors, which lie beside the folders of rendered documents
    folders=("tests/unit/protocol", *_VECTORS),
    environment={"OTS_TUNNEL_CODEC": "python"},
    is_measured=True,
)
#: Two at a time: the library counts its leases in seconds, drops those that a busy machine renews late, and ends where
#: its calls take long.
LEASES = Stage(
    "leases",
    "the vendor's Stream Client library, alone and beside our workers",
    marks="leases and not long",
    folders=("tests/oracle",),
    workers=2,
    timeout=300,
    is_measured=True,
    waits_for=(_KUBERNETES,),
)
COVERAGE = Stage("coverage", "lines and branches per package", ((sys.executable, "-m", "tests.coverage_gate"),))
API = Stage(
    "api",
    "the operator on a real API server",
    marks="api and not (spark or cluster or long)",
    folders=("tests/operator", "tests/chart", "tests/simulation/apiserver"),
    # each has an API server of its own, which costs three seconds of a processor and 2 % of it afterwards
    workers=5,
    timeout=300,
    is_measured=True,
    waits_for=(_KUBERNETES,),
)
#: Two at a time, programs with Delta beside a session, and nothing else: Spark waits ten seconds for a process of
#: Python, and then gives up.
SPARK = Stage(
    "spark",
    "PySpark in a local session",
    marks="spark and not (cluster or long)",
    folders=("tests/spark",),
    workers=2,
    timeout=300,
    is_measured=True,
    waits_for=(_KUBERNETES,),
)
E2E = Stage(
    "cluster",
    "the demo's scenario in small on a real cluster",
    marks="cluster and not long",
    folders=("tests/cluster_scenarios",),
    timeout=1800,
    waits_for=(_KUBERNETES,),
)
_LONG_SIMULATION = "simulation-long"
_SCENARIOS = "scenarios"
#: One cluster, and so one scenario after the other: the longest row of tests, in which most wait for pods.
SCENARIOS = Stage(
    _SCENARIOS,
    "the life of objects on a real cluster, with workers and with Spark",
    marks="long and cluster",
    folders=("tests/cluster_scenarios",),
    timeout=3600,
    is_resumed=True,
    is_beside=True,
    waits_for=(_KUBERNETES,),
)
LONG = Stage(
    "long",
    "many seeds, many kills",
    marks="long and not (alone or cluster)",
    workers=4,
    timeout=3600,
    is_resumed=True,
    waits_for=(_KUBERNETES,),
)
#: Beside others they would measure these.
ALONE = Stage(
    "alone",
    "what is timed or counted, one after the other",
    marks="long and alone",
    timeout=3600,
    is_resumed=True,
    waits_for=(_KUBERNETES, _LONG_SIMULATION, _SCENARIOS),
)

_LEASES = (sys.executable, "-m", "tests.simulation", "campaign", "--kind", "leases")
SIMULATION = Stage(
    "simulation",
    "the region on virtual time, for a minute: seeds from a recorded start",
    # the long run takes those of the tree: among a hundred new ones, one still tells what nobody has looked into
    (
        (sys.executable, "-m", "tests.simulation", "campaign", "--seconds", "60", "--start", "5000", "--seeds", "120"),
        # of their own, so that the seeds of all other kinds stay those that are recorded
        (*_LEASES, "--seconds", "30", "--start", "1", "--seeds", "6"),
    ),
)
#: On virtual time, so that what runs beside it costs seeds and no result: it yields to what has time limits.
LONG_SIMULATION = Stage(
    _LONG_SIMULATION,
    "the region on virtual time: new seeds for every committed tree, for half an hour",
    (
        (
            "nice",
            "-n",
            "19",
            sys.executable,
            "-m",
            "tests.simulation",
            "campaign",
            "--seconds",
            "1800",
            "--start",
            "tree",
        ),
        ("nice", "-n", "19", *_LEASES, "--seconds", "300", "--start", "tree"),
    ),
    is_beside=True,
)

#: Those of `tests.spark.matrix`.
MINORS = ("3.5", "4.0", "4.1", "4.2", "4.3")
PYSPARK = Stage(
    "pyspark",
    "other minors of PySpark, and Spark Connect; the first time each installs 500 MB",
    tuple((sys.executable, "-m", "tests.spark.matrix", minor) for minor in MINORS),
    may_lack=True,
    installs=tuple(f"pyspark-{minor}" for minor in MINORS),
    waits_for=(_KUBERNETES,),
)

#: The cluster comes before the tests, because some of them use its programs.
SHORT_RUN = (PROGRAMS, CLUSTER, LINT, REFERENCE, SIMULATION, FAST, LEASES, API, SPARK, E2E)
#: By name alone (`make coverage`): to measure costs three quarters of a processor's time again.
BY_NAME = (COVERAGE,)
LONG_RUN = (PROGRAMS, CLUSTER, LONG_SIMULATION, SCENARIOS, PYSPARK, LONG, ALONE)


def main() -> int:
    """Run the chosen stages; 0 when all passed."""
    stages = chosen(sys.argv[1:])
    REPORTS.mkdir(parents=True, exist_ok=True)
    # the tests install Go and Node by themselves, and the setup has compiled the codec where there is a compiler
    installed = {"go", "nodejs", *(["compiler"] if shutil.which("cc") else [])}
    adopt_orphans()
    if COVERAGE in stages and FAST in stages:  # else what is measured is added to an earlier run
        shutil.rmtree(MEASURED, ignore_errors=True)
    outcomes = run_all(stages, installed)
    print(summary(outcomes), flush=True)
    return int(any(outcome.status for outcome in outcomes))


def run_all(stages: tuple[Stage, ...], installed: set[str]) -> list[Outcome]:
    """Run stages in their order, and some of them beside those that do not wait for them; `installed` as for `run`."""
    outcomes: list[Outcome] = []
    beside: dict[str, tuple[Path, Future[Outcome]]] = {}

    def show(names: Iterable[str]) -> None:
        outcomes.extend(_shown(*beside.pop(name)) for name in names)

    with ThreadPoolExecutor(max_workers=max(len(stages), 1)) as threads:
        for stage in stages:
            show(name for name in stage.waits_for if name in beside)
            if stage.is_beside:
                log = REPORTS / f"{stage.name}.log"
                print(f"\n=== {stage.name}: begins beside what follows; its output: {log}", flush=True)
                beside[stage.name] = log, threads.submit(_run_beside, stage, installed, log)
                continue
            outcomes.append(run(stage, installed))
            if not beside:  # whatever is still there was left behind
                outcomes[-1].left_over = end_orphans()
        show(list(beside))
    return outcomes


def _run_beside(stage: Stage, installed: set[str], log: Path) -> Outcome:
    with log.open("w") as output:
        return run(stage, installed, output)


def _shown(log: Path, beside: Future[Outcome]) -> Outcome:
    """Wait for what ran beside others, and show its output in one piece."""
    outcome = beside.result()
    print(log.read_text(), end="", flush=True)
    return outcome


def chosen(arguments: Sequence[str]) -> tuple[Stage, ...]:
    """The stages that a command line asks for; they measure coverage only before its gate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--long", action="store_true", help="the long runs instead of the short ones")
    parser.add_argument("--only", nargs="+", help="names of stages, in any order")
    options = parser.parse_args(arguments)
    stages = LONG_RUN if options.long else SHORT_RUN
    if not options.only:
        return _unmeasured(stages)
    known = {stage.name for stage in (*SHORT_RUN, *BY_NAME, *LONG_RUN)}
    unknown = set(options.only) - known
    if unknown:
        parser.error(f"no such stage: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    named = tuple(stage for stage in (*stages, *BY_NAME) if stage.name in options.only)
    return named if COVERAGE in named else _unmeasured(named)


def _unmeasured(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    return tuple(replace(stage, is_measured=False) for stage in stages)


def run(stage: Stage, installed: set[str], output: TextIO | None = None) -> Outcome:
    """Run one stage.

    Args:
        installed: programs that are there; what the stage installs is added.
        output: where its output goes; None: to this process's.
    """
    print(f"\n=== {stage.name}: {stage.what}", file=output, flush=True)
    begin, pressure = time.monotonic(), read_pressure()
    # the gate reads those of what was measured
    report = (MEASURED if stage.is_measured else REPORTS) / f"{stage.name}.xml"
    report.unlink(missing_ok=True)
    commands = stage.commands or (_pytest(stage, report),)
    outcome = Outcome(stage.name)
    for place, command in enumerate(commands):
        if _execute(command, stage, outcome, installed, output) == 0:
            installed.update(stage.installs[place : place + 1])
    outcome.seconds = time.monotonic() - begin
    outcome.pressure = read_pressure().since(pressure, outcome.seconds)
    if stage.marks is not None:
        _count(outcome, stage, report)
    return outcome


def _execute(
    command: tuple[str, ...], stage: Stage, outcome: Outcome, installed: set[str], output: TextIO | None
) -> int:
    environment = {**_environment(stage), INSTALLED: " ".join(sorted(installed))}
    status = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, stdout=output, stderr=output and subprocess.STDOUT
    ).returncode
    if status == 2 and stage.may_lack:
        outcome.counts["skipped"] += 1
        outcome.skipped[f"{' '.join(command)} cannot run here, as it says above"] += 1
    elif stage.marks is not None:
        outcome.status = status
    else:
        outcome.counts["failed" if status else "passed"] += 1
        outcome.status = outcome.status or status
    return status


def _environment(stage: Stage) -> dict[str, str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return {**compiling_once(), **stage.environment, "PATH": path}


def _pytest(stage: Stage, report: Path) -> tuple[str, ...]:
    python = (sys.executable, "-m", "coverage", "run") if stage.is_measured else (sys.executable,)
    command = (*python, "-m", "pytest", "-q", "-m", stage.marks or "", "--junitxml", str(report))
    resumed = ("-p", "tests.resume", "--resume", str(_record(stage))) if stage.is_resumed else ()
    # a process that dies has failed its test, which is named at once; with another one in its place, a run may hang
    several = ("-n", str(stage.workers), "--dist", "loadgroup", "--max-worker-restart", "0")
    parallel = several if stage.workers else ()
    return (*command, "-o", f"timeout={stage.timeout}", *resumed, *parallel, *stage.folders)


def _record(stage: Stage) -> Path:
    return REPORTS / f"{stage.name}.passed"


def _count(outcome: Outcome, stage: Stage, report: Path) -> None:
    if not report.exists():
        outcome.status = outcome.status or 1
        return
    outcome.read(report)
    if stage.is_resumed:
        # what passed before the interruption counts as well
        outcome.counts["passed"] = len(_record(stage).read_text().splitlines()) - 1
        if outcome.status == 5 and outcome.counts["passed"]:
            outcome.status = 0
    if not outcome.counts:  # a stage that selects nothing has lost its tests
        outcome.status = outcome.status or 5


if __name__ == "__main__":
    sys.exit(main())
