"""The type checker refuses a wrapper that takes a sink which confirms later for one that confirms at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

# the type checker runs once for all of them: two at a time lock each other out of its cache
pytestmark = [pytest.mark.xdist_group("kinds"), pytest.mark.lasts(10)]

PROJECT = Path(__file__).resolve().parents[3]
BEGINNING = """
from collections.abc import AsyncGenerator
from ots_tunnel.sinks import Batch, Confirmation, Deferred, Guard, Immediate, all_confirmed, confirmed
from ots_tunnel.sinks.middleware.base import AtOnce, Middleware, Wrapping, behind, deferred

"""
WRAPPER = """
class Hasty(Wrapping[Deferred], Immediate):
    async def write(self, batch: Batch, guard: Guard) -> None:
        {body}
"""
LATER = """
class Hasty(Wrapping[Deferred], Deferred):
    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        {body}
"""
REFUSED = {
    "the confirmation is dropped": (WRAPPER.format(body="await self._sink.take(batch, guard)"), "[unused-awaitable]"),
    "the call of the other kind": (WRAPPER.format(body="await self._sink.write(batch, guard)"), "[attr-defined]"),
    "the result of the other kind": (
        WRAPPER.format(body="return await self._sink.take(batch, guard)"),
        "[return-value]",
    ),
    "nothing to wait for": (LATER.format(body="return None"), "[return-value]"),
    "one of two slices is dropped": (
        LATER.format(body="await self._sink.take(batch, guard); return await self._sink.take(batch, guard)"),
        "[unused-awaitable]",
    ),
    "it plays an immediate one": ("def f(sink: Deferred) -> Deferred: return AtOnce(sink)", "[arg-type]"),
    "middleware makes it immediate": (
        "def f(middleware: Middleware, sink: Deferred) -> Immediate: return behind(middleware, sink)",
        "[return-value]",
    ),
    "middleware confirms": (
        "class M(Middleware):\n    async def portions(self, batch: Batch, guard: Guard) -> AsyncGenerator[Batch]:\n"
        "        yield confirmed()",
        "[misc]",
    ),
}
ALLOWED = """
def now(middleware: Middleware, sink: Immediate) -> Immediate: return behind(middleware, sink)
def later(middleware: Middleware, sink: Deferred) -> Deferred: return behind(middleware, sink)
def any_kind(sink: Immediate | Deferred) -> Deferred: return deferred(sink)
class Slices(Wrapping[Deferred], Deferred):
    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        return all_confirmed([await self._sink.take(batch, guard), await self._sink.take(batch, guard)])
"""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the type checker says, by file."""
    folder = tmp_path_factory.mktemp("wrappers")
    texts = {f"refused{number}": text for number, (text, _) in enumerate(REFUSED.values())} | {"allowed": ALLOWED}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(BEGINNING + text)
    files = [str(folder / f"{name}.py") for name in texts]
    settings = ["--config-file", str(PROJECT / "pyproject.toml"), "--cache-dir", str(PROJECT / ".mypy_cache" / "kinds")]
    report, errors, _ = api.run([*settings, "--no-error-summary", *files])
    assert not errors
    lines = report.splitlines()
    return {name: "\n".join(line for line in lines if f"{name}.py" in line) for name in texts}


@pytest.mark.parametrize(
    ("number", "code"), [(number, code) for number, (_, code) in enumerate(REFUSED.values())], ids=list(REFUSED)
)
def test_a_wrapper_that_confirms_too_early_is_refused(judged: dict[str, str], number: int, code: str) -> None:
    assert code in judged[f"refused{number}"], judged


def test_wrappers_that_wait_for_every_confirmation_are_allowed(judged: dict[str, str]) -> None:
    assert judged["allowed"] == ""
