"""What an interpreter of Spark keeps behind its first task."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ots_tunnel.spark.interpreters import is_of_spark, settling

ROOT = Path(__file__).parents[3]

#: A module of the name of Spark's, as its interpreters have one: what it counts as frozen before, behind and later.
PROGRAM = """
import gc
from ots_tunnel.spark.interpreters import is_of_spark, settling

assert is_of_spark()
print(gc.get_freeze_count(), list(settling(iter("ab"))), gc.get_freeze_count() > 1000)
first = gc.get_freeze_count()
more = [[] for _ in range(100)]
assert list(settling(iter("c"))) == ["c"]
print(gc.get_freeze_count() == first)
"""


def test_imports_are_left_out_of_collections_behind_the_first_task(tmp_path: Path) -> None:
    package = tmp_path / "pyspark"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "played.py").write_text(PROGRAM)
    path = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT / 'worker')!r}]\n"
    run = f"{path}import runpy; runpy.run_module('pyspark.played', run_name='__main__', alter_sys=True)"

    ended = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)

    assert ended.stdout.splitlines() == ["0 ['a', 'b'] True", "True"], ended.stderr


def test_an_interpreter_of_someone_else_is_left_alone() -> None:
    import gc

    before = gc.get_freeze_count()

    assert list(settling(iter("ab"))) == ["a", "b"]
    assert not is_of_spark()
    assert gc.get_freeze_count() == before
