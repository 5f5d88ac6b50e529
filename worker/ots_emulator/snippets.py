"""Complete programs that connect to an emulator and list the tables of an instance."""

from __future__ import annotations

from dataclasses import dataclass

#: The default key pair, which is public; any other secret is not printed.
WELL_KNOWN = ("test-id", "test-secret")
SECRET_VARIABLE = "OTS_ACCESS_KEY_SECRET"


@dataclass(frozen=True, slots=True)
class Connection:
    """Endpoint, instance and key pair of a client."""

    endpoint: str
    instance: str
    key_id: str
    secret: str


def python_snippet(to: Connection) -> str:
    """A program for the Python SDK (`pip install tablestore`)."""
    secret, imports = f'"{to.secret}"', ""
    if _is_secret(to):
        secret, imports = f'os.environ["{SECRET_VARIABLE}"]', "import os\n\n"
    return f"""\
{imports}import tablestore

client = tablestore.OTSClient("{to.endpoint}", "{to.key_id}", {secret}, "{to.instance}")
print(list(client.list_table()))
"""


def go_snippet(to: Connection) -> str:
    """A program for the Go SDK (`go get github.com/aliyun/aliyun-tablestore-go-sdk`)."""
    secret, imports = f'"{to.secret}"', ""
    if _is_secret(to):
        secret, imports = f'os.Getenv("{SECRET_VARIABLE}")', '\n\t"os"'
    return f"""\
package main

import (
\t"fmt"{imports}

\t"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

func main() {{
\tclient := tablestore.NewClient("{to.endpoint}", "{to.instance}", "{to.key_id}", {secret})
\ttables, err := client.ListTable()
\tfmt.Println(tables, err)
}}
"""


def java_snippet(to: Connection) -> str:
    """A program for the Java SDK (Maven: com.aliyun.openservices:tablestore)."""
    secret = f'System.getenv("{SECRET_VARIABLE}")' if _is_secret(to) else f'"{to.secret}"'
    return f"""\
import com.alicloud.openservices.tablestore.SyncClient;

public class ListTables {{
    public static void main(String[] arguments) {{
        SyncClient client = new SyncClient("{to.endpoint}", "{to.key_id}", {secret}, "{to.instance}");
        System.out.println(client.listTable().getTableNames());
        client.shutdown();
    }}
}}
"""


def _is_secret(to: Connection) -> bool:
    return (to.key_id, to.secret) != WELL_KNOWN
