"""Names of columns: what Spark takes for one, letter case aside, and what a mirror and Delta have anyway. Pure."""

from __future__ import annotations

import re
from typing import Final

#: A mirror's own columns: values that no column has, and the versions of all values.
OTHERS: Final = "_others"
VERSIONS: Final = "_versions"
#: Columns that Delta 4.4.0 adds while it merges or marks rows as gone: each was seen to fail every MERGE into a table
#: that has one, three of them only as a key. Others of the kind were tried, and none failed.
_OF_DELTA: Final = frozenset(
    (
        "__delta_internal_is_row_deleted",
        "_file_name_",
        "_metadata",
        "_row_dropped_",
        "_row_id_",
        "_source_row_present_",
        "_target_row_present_",
        "_tmp_metadata_row_index",
        "deletionvectorid",
        "dvfilepath",
    )
)
#: Names that look like those, and what Delta calls the columns of a change feed: a later release may need them.
_LIKE_DELTAS: Final = re.compile(
    r"_.*_|_source_row_index|_(change|commit)_\w+|_tmp_metadata_\w+|__delta_internal_\w+|_databricks_internal_\w+",
    re.IGNORECASE,
)

#: Columns that Iceberg (seen in 1.12.0) gives each row by itself, and names that it gives the members of a mirror's or
#: a change log's own columns, such as `_others.key`: it refuses a table with one of them.
_OF_ICEBERG: Final = re.compile(
    r"_(file|pos|deleted|spec_id|partition|row_id|last_updated_sequence_number|change_type|change_ordinal"
    r"|commit_snapshot_id|original_.*)|(_others|_versions|key|sequence|deleted|others|versions|cells)\..*",
    re.IGNORECASE,
)


def is_of_delta(name: str) -> bool:
    """Whether Delta needs the name itself, so that no table that it merges into has such a column."""
    return spelled(name) in _OF_DELTA


def may_be_of_delta(name: str) -> bool:
    """Whether Delta needs the name, or may do so: an attribute that is found gets no column of it."""
    return is_of_delta(name) or _LIKE_DELTAS.fullmatch(name) is not None


def is_of_iceberg(name: str) -> bool:
    """Whether Iceberg has the name itself, so that no table has such a column."""
    return _OF_ICEBERG.fullmatch(name) is not None


def spelled(name: str) -> str:
    """Equal for names that are one to Spark, which compares letter by letter (`String.equalsIgnoreCase` of Java).

    Python's `lower` keeps letters apart that Java takes for one, such as the two i of Turkish.
    """
    return "".join((upper if len(upper := each.upper()) == 1 else each).lower()[0] for each in name)
