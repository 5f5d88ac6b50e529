"""Commands that the pages tell people to run exist, with these options."""

from __future__ import annotations

import importlib
import pkgutil
import re
import shlex
from collections.abc import Iterator

import click
import pytest

from ots_emulator.__main__ import main as emulator_command
from ots_tunnel.cli import cli
from ots_tunnel_operator.__main__ import main as operator_command
from ots_tunnel_operator.plugin.command import cli as plugin_command
from tests.docs.pages import ROOT, pages
from tests.docs.pages import page as page_of

PROGRAMS = {
    "ots-tunnel": cli,
    "ots-emulator": emulator_command,
    "ots-tunnel-operator": operator_command,
    "kubectl-ott": plugin_command,
}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
MODULES = re.compile(r"python -m ([\w.]+)")


def code() -> Iterator[tuple[str, str]]:
    """Lines of code blocks without a language, and code in sentences, each with its page."""
    for each in pages():
        for block in each.blocks:
            if block.language == "":
                yield from ((str(each), line) for line in block.text.replace("\\\n", " ").splitlines())
        yield from ((str(each), " ".join(span.split())) for span in re.findall(r"`([^`]+)`", each.prose))


def commands() -> Iterator[tuple[str, str]]:
    """Commands of our programs with at least one argument."""
    for page, line in code():
        text = re.sub(r"\s+#.*|; .*|\.\.\.$", "", line.strip()).removeprefix(".venv/bin/")
        text = re.sub(r"^(?:\$ )?kubectl ott ", "kubectl-ott ", text)
        if text.partition(" ")[0] in PROGRAMS and " " in text and "COMMAND" not in text:
            yield page, text


def options_of(command: click.Command) -> set[str]:
    return {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}


@pytest.mark.parametrize(("page", "text"), sorted(set(commands())))
def test_commands_have_these_names_and_options(page: str, text: str) -> None:
    program, *words = shlex.split(text)
    command: click.Command = PROGRAMS[program]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        with click.Context(command) as context:
            found = command.get_command(context, words.pop(0))
        assert found is not None, f"{page}: {text}"
        command = found
    unknown = {word.partition("=")[0] for word in words if word.startswith("-")} - options_of(command)
    assert unknown == set(), f"{page}: {text}"


def test_make_targets_exist() -> None:
    missing = {
        (page, target)
        for page, line in code()
        for target in re.findall(r"\bmake ([a-z-]+)", line)
        if target not in TARGETS
    }

    assert missing == set()


def test_modules_that_are_run_exist() -> None:
    for page, line in code():
        for module in MODULES.findall(line):
            paths = [ROOT / folder / module.replace(".", "/") for folder in (".", "worker", "operator")]
            found = any(path.with_suffix(".py").is_file() or (path / "__main__.py").is_file() for path in paths)
            assert found, f"{page}: {line}"


def test_paths_that_are_named_exist() -> None:
    folders = ("tests/", "docs/", "charts/", "crds/", "worker/", "operator/")
    for page, span in code():
        for word in span.split():
            path = word.rstrip(".,:;")
            if path.startswith(folders) and not re.search(r"[<>*{}]|\.\.\.", path):
                assert (ROOT / path).exists(), f"{page}: {path}"


def dotted_names() -> list[str]:
    """Modules and their members that the pages name."""
    pattern = re.compile(r"(?:ots_tunnel|ots_emulator|ots_tunnel_operator)(?:\.\w+)+")
    return sorted({span for _, span in code() if pattern.fullmatch(span)})


@pytest.mark.parametrize("name", dotted_names())
def test_names_of_modules_and_members_exist(name: str) -> None:
    assert pkgutil.resolve_name(name) is not None


def test_classes_of_the_building_blocks_are_in_their_modules() -> None:
    section = page_of("docs/protocol.md").section("5.1 Building blocks")
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| `([\w.]+)` \|$", section, re.MULTILINE)

    assert len(rows) > 5
    for names, module in rows:
        for name in re.findall(r"`(\w+)`", names):
            assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"


def test_there_are_commands_to_check() -> None:
    assert len(set(commands())) > 20
