"""Options, client and output of the commands that call the service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import ValidationError

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.config import InstanceConfig, describe
from ots_tunnel.console.explanations import Place, explaining
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import ConfigError

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])


def service_options(command: Command) -> Command:
    """Add `--endpoint`, `--instance`, `--credentials` and `-o`."""
    for option in (
        click.option(
            "-o",
            "--output",
            type=click.Choice(["table", "json"]),
            default="table",
            show_default=True,
            help="Output format.",
        ),
        click.option(
            "--credentials",
            required=True,
            envvar="OTS_TUNNEL_CREDENTIALS",
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            help="Folder with the files accessKeyId, accessKeySecret and optional securityToken.",
        ),
        click.option("--instance", required=True, envvar="OTS_TUNNEL_INSTANCE", help="Instance name."),
        click.option(
            "--endpoint", required=True, envvar="OTS_TUNNEL_ENDPOINT", help="Instance endpoint, http(s)://host[:port]."
        ),
    ):
        command = option(command)
    return command


def with_client(
    endpoint: str,
    instance: str,
    credentials: Path,
    ask: Callable[[TunnelClient], Awaitable[Result]],
    *,
    table: str = "",
    tunnel: str = "",
) -> Result:
    """Call `ask` with a client, close the client, return the answer.

    Args:
        table, tunnel: names for error messages.

    Raises:
        ConfigError: an option is wrong. Explained: the service refused or did not answer.
    """
    try:
        InstanceConfig.model_validate(
            {"endpoint": endpoint, "instance": instance, "credentials": {"directory": credentials}}
        )
    except ValidationError as error:
        raise ConfigError(describe(error, InstanceConfig, "--")) from error
    place = Place(endpoint, instance, str(credentials), table, tunnel)

    async def session() -> Result:
        client = TunnelClient(endpoint, instance, FileCredentials(credentials))
        try:
            with explaining(place):
                return await ask(client)
        finally:
            await client.close()

    return asyncio.run(session())


def show(rows: Sequence[Mapping[str, Any]], output: str) -> None:
    """Print rows as an aligned table, or as JSON lines."""
    if output == "json":
        for row in rows:
            click.echo(json.dumps(row))
        return
    if not rows:
        click.echo("none")
        return
    titles = list(rows[0])
    lines = [[title.upper() for title in titles]]
    lines += [["-" if row[title] is None else str(row[title]) for title in titles] for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
