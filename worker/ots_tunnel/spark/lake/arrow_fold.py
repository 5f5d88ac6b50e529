"""`fold` on whole batches of Arrow: without an object for each change, cell and value.

Theory of operation. The changes of one key lie one after the other, in their order: a run. In a run whose cells are all
puts, which nearly all are, it is enough to choose cells:

    where it begins to count    at its last PUT or DELETE: whatever was before is gone behind it; without one at its
                                first change, an update of a row that is not there
    the cell of an attribute    the one with the newest version from there on, of equal versions the last one
    no row                      a run that counts from a DELETE, or from an update of no row, and has no cell

All of this is sorting and counting, which Arrow does for all runs of a batch at once. A run with the deletion of a cell
depends on what was before, change by change: `fold` has these.

Example: PUT a=1; UPDATE a=2, b=3; DELETE; UPDATE c=4 is one run. It counts from the DELETE on, and leaves c=4.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def runs_of(key: pa.StructArray) -> pa.Array:
    """For each change the number of its run; runs are counted from 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    begins = _differ_from_before(key.flatten()).cast(pa.int64())
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(begins)])


def divided(changes: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The runs whose cells are all puts with value and version, and the others; one change at least."""
    import pyarrow.compute as pc

    cells, runs = changes.column("cells"), runs_of(changes.column("key"))
    _, operations, kinds, versions, _ = cells.flatten().flatten()
    is_put = pc.and_(pc.equal(operations, "PUT"), pc.and_(pc.is_valid(kinds), pc.is_valid(versions)))
    odd = pc.unique(runs.take(pc.list_parent_indices(cells).filter(pc.invert(is_put))))
    if not len(odd):
        return changes, changes.slice(len(changes))
    is_odd = pc.is_in(runs, value_set=odd)
    return changes.filter(pc.invert(is_odd)), changes.filter(is_odd)


def fold_puts(changes: pa.RecordBatch) -> pa.RecordBatch:
    """One row for each run, in their order, as `row_frames` has them; all cells are puts with value and version.

    Args:
        changes: at least one.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    action, key = changes.column("action"), changes.column("key")
    runs, places = runs_of(key), pa.array(range(len(changes)), pa.int64())
    first = _first(action, runs, places)
    # a DELETE leaves none of its own cells
    counts = pc.and_(pc.greater_equal(places, first.take(runs)), pc.not_equal(action, "DELETE"))
    of_runs, names, versions, values = _newest(changes.column("cells"), runs, counts)
    sizes = _sizes(of_runs, len(first))
    is_gone = pc.and_(pc.equal(sizes, 0), pc.not_equal(action.take(first), "PUT"))
    ends = pc.cumulative_sum(sizes).cast(pa.int32())
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends.slice(0, len(ends) - 1)])
    # in Arrow the entry without a beginning is null
    offsets = pa.concat_arrays([pc.if_else(is_gone, pa.scalar(None, pa.int32()), starts), ends.slice(len(ends) - 1)])
    return pa.RecordBatch.from_pydict(
        {
            "key": key.take(first),
            "row": pa.MapArray.from_arrays(offsets, names, values, pa.map_(names.type, values.type)),
            "versions": pa.MapArray.from_arrays(offsets, names, versions, pa.map_(names.type, versions.type)),
        }
    )


def _first(action: pa.Array, runs: pa.Array, places: pa.Array) -> pa.Array:
    """For each run the place of the change from which on it counts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bases = pc.if_else(pc.equal(action, "UPDATE"), pa.scalar(None, pa.int64()), places)
    changes = pa.table({"run": runs, "place": places, "base": bases})
    found = changes.group_by("run", use_threads=False).aggregate([("base", "max"), ("place", "min")])
    return pc.coalesce(found["base_max"], found["place_min"]).combine_chunks()


def _newest(cells: pa.ListArray, runs: pa.Array, counts: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """Run, name, version and value of the cells that stay, in the order of their runs.

    Args:
        counts: for each change whether its cells do.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from ots_tunnel.sinks.files.rows.arrow_rows import VALUE

    parents = pc.list_parent_indices(cells)
    counting = counts.take(parents)
    of_runs = runs.take(parents).filter(counting)
    names, _, _, versions, values = (part.filter(counting) for part in cells.flatten().flatten())
    codes = names.dictionary_encode().indices
    found = pa.table({"run": of_runs, "name": codes, "version": versions})
    if len(found.group_by(["run", "name"], use_threads=False).aggregate([])) < len(found):
        # the sort keeps the order of equal versions
        order = pc.sort_indices(found, sort_keys=[(name, "ascending") for name in found.column_names])
        changed = _differ_from_before([of_runs.take(order), codes.take(order)])
        last = order.filter(pa.concat_arrays([changed, pa.array([True])]))
        of_runs, names, versions, values = (part.take(last) for part in (of_runs, names, versions, values))
    # as `row_frames` has them: Spark may use types for longer texts
    members = [member.cast(field.type) for member, field in zip(values.flatten(), VALUE, strict=True)]
    return of_runs, names.cast(pa.string()), versions, pa.StructArray.from_arrays(members, fields=list(VALUE))


def _differ_from_before(columns: Sequence[pa.Array]) -> pa.Array:
    """For each row behind the first one whether one of its columns has another value than in the row before."""
    import pyarrow.compute as pc

    return reduce(pc.or_, (pc.not_equal(one.slice(1), one.slice(0, len(one) - 1)) for one in columns))


def _sizes(of_runs: pa.Array, count: int) -> pa.Array:
    """How many cells each of `count` runs has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # one more for each, so that all are there, in their order
    every = pa.table({"run": pa.concat_arrays([pa.array(range(count), pa.int64()), of_runs])})
    found = every.group_by("run", use_threads=False).aggregate([("run", "count")])
    return pc.subtract(found["run_count"].combine_chunks(), 1)
