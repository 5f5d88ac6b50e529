"""Checked options of a write. `source` describes every option."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.place import PLACE_OPTIONS, Place, known_options
from ots_tunnel.spark.reader.option_values import choice

if TYPE_CHECKING:
    from ots_tunnel.config import FileStoreConfig

DEFAULT_DIRECTORY = "/etc/ots/secrets/sink"
#: Options of the place for dead letters, and the names of `config.FileStoreConfig` for them.
_LETTER_OPTIONS: Final = {
    "deadLetterUrl": "url",
    "deadLetterEndpoint": "endpoint",
    "deadLetterRegion": "region",
    "deadLetterBucketInHost": "bucketInHost",
    "deadLetterCredentialsDirectory": "credentials",
    "deadLetterCaFile": "caFile",
}
_OPTIONS = (*PLACE_OPTIONS, "actionColumn", "versionColumn", "onRefused", *_LETTER_OPTIONS)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Checked options of a write."""

    place: Place
    action_column: str
    """Column with the action of each row; empty where every row is a put."""
    version_column: str
    """Column with the version of each row's cells; empty where the service chooses it."""
    skips_refused: bool
    """Whether a refused row is left out and counted; otherwise it fails the write."""
    letters: FileStoreConfig | None = None
    """Place for the rows that are left out; None where they are only counted."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Check the options of a write.

        Raises:
            ConfigError: an option is missing, unknown or wrong; names it.
        """
        # `path` is Spark's own, of `save("...")`
        if options.get("path"):
            raise ConfigError("option 'path': found one, allowed is save() without it: option 'table' names the table")
        given = known_options({name: value for name, value in options.items() if name.lower() != "path"}, _OPTIONS)
        action, version = given.get("actioncolumn", ""), given.get("versioncolumn", "")
        if action and action == version:
            raise ConfigError(f"option 'versionColumn': found {version!r}, which is option 'actionColumn' as well")
        policy = choice(given, "onRefused", ("fail", "skip", "deadLetter"))
        return cls(
            place=Place.parse(given, DEFAULT_DIRECTORY),
            action_column=action,
            version_column=version,
            skips_refused=policy != "fail",
            letters=_letters(given, policy),
        )


def _letters(given: Mapping[str, str], policy: str) -> FileStoreConfig | None:
    options = [option for option in _LETTER_OPTIONS if option.lower() in given]
    if policy != "deadLetter":
        if options:
            raise ConfigError(f"option {options[0]!r}: found with onRefused {policy}, allowed is deadLetter with it")
        return None
    if "deadLetterUrl" not in options:
        raise ConfigError("option 'deadLetterUrl' is missing: onRefused deadLetter needs it")
    # a write without dead letters needs no pydantic
    from pydantic import ValidationError

    from ots_tunnel.config import FileStoreConfig
    from ots_tunnel.config.messages.describing import describe

    document: dict[str, Any] = {_LETTER_OPTIONS[option]: given[option.lower()] for option in options}
    if "bucketInHost" in document:
        document["bucketInHost"] = choice(given, "deadLetterBucketInHost", ("false", "true")) == "true"
    if "credentials" in document:
        document["credentials"] = {"directory": document["credentials"]}
    try:
        return FileStoreConfig.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError(f"options deadLetter...: {describe(error, FileStoreConfig)}") from None
