"""Every help ends with examples, and the examples are commands that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from ots_emulator.__main__ import main as emulator_command
from ots_tunnel.cli import cli
from ots_tunnel_operator.__main__ import main as operator_command

PROGRAMS: dict[str, click.Command] = {
    "ots-tunnel": cli,
    "ots-emulator": emulator_command,
    "ots-tunnel-operator": operator_command,
}


def commands(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from commands((*words, name), found)


HELPS = {" ".join(words): found for name, program in PROGRAMS.items() for words, found in commands((name,), program)}


def examples_of(command: click.Command) -> list[str]:
    lines = re.findall(r"(ots-(?:tunnel|tunnel-operator|emulator) .*)", command.epilog or "")
    return [re.sub(r"\s+[#>] .*", "", line) for line in lines]


@pytest.mark.parametrize("words", HELPS)
def test_every_help_ends_with_examples(words: str) -> None:
    program, *names = words.split()
    shown = CliRunner().invoke(PROGRAMS[program], [*names, "--help"]).output
    examples = examples_of(HELPS[words])

    assert examples
    for example in examples:
        assert f"{example}" in shown, "no line of an example is wrapped"


@pytest.mark.parametrize("example", sorted({line for each in HELPS.values() for line in examples_of(each)}))
def test_examples_are_commands_that_exist(example: str) -> None:
    program, *words = shlex.split(example)
    if "COMMAND" in words:
        return
    command = PROGRAMS[program]
    context = click.Context(command, info_name=program)
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None, example
        command = found
    with CliRunner().isolation(input="y\n"):  # answers a question for a confirmation
        command.make_context(program, words)  # raises where an option or an argument is wrong


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete(shell: str) -> None:
    script = CliRunner().invoke(cli, env={"_OTS_TUNNEL_COMPLETE": f"{shell}_source"}, prog_name="ots-tunnel").output

    assert "_OTS_TUNNEL_COMPLETE" in script
    words = {"_OTS_TUNNEL_COMPLETE": "bash_complete", "COMP_WORDS": "ots-tunnel ve", "COMP_CWORD": "1"}
    assert CliRunner().invoke(cli, env=words, prog_name="ots-tunnel").output == "plain,verify\n"
