"""A loop around GetRange of the vendor's Python SDK, as a program of one's own would have it.

    python -m tests.bench.programs.range_loop ENDPOINT INSTANCE TABLE... [--columns X Y]

A JSON line with `rows` ends each table.
"""

from __future__ import annotations

import argparse
import json

import tablestore

KEYS = ("device", "reading")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("instance")
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--columns", nargs="*", default=[])
    given = parser.parse_args()
    client = tablestore.OTSClient(given.endpoint, "test-id", "test-secret", given.instance)
    for table in given.tables:
        print(json.dumps({"rows": read(client, table, given.columns)}), flush=True)


def read(client: tablestore.OTSClient, table: str, columns: list[str]) -> int:
    """Read every row, and touch every value."""
    begin = [(name, tablestore.INF_MIN) for name in KEYS]
    end = [(name, tablestore.INF_MAX) for name in KEYS]
    rows = touched = 0
    while begin is not None:
        _, begin, page, _ = client.get_range(table, tablestore.Direction.FORWARD, begin, end, columns, max_version=1)
        for row in page:
            rows += 1
            for cell in (*row.primary_key, *row.attribute_columns):
                touched += cell[1] is not None
    assert touched >= rows
    return rows


if __name__ == "__main__":
    main()
