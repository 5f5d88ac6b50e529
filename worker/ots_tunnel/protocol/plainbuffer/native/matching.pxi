# The equal rows of two pages (see `matching`).

cdef Py_ssize_t _count_row(
    const byte* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* cells, Py_ssize_t* versions
) noexcept nogil:
    """Offset after the row at `at`, with its columns and versions counted; -1 where only the reference can decide."""
    cdef Cell cell
    cdef const byte* name = NULL
    cdef Py_ssize_t name_size = 0
    cdef int order
    cells[0] = versions[0] = 0
    if at >= end or data[at] != ROW_KEY:
        return -1
    at += TAG_BYTES
    while at < end and data[at] == CELL:
        at = _scan_cell(data, at, end, &cell)
        if at < 0 or not cell.has_value or cell.op or cell.has_timestamp:
            return -1
    if at < end and data[at] == ROW_DATA:
        at += 1
        while at < end and data[at] == CELL:
            at = _scan_cell(data, at, end, &cell)
            if at < 0:
                return -1
            order = -1
            if name is not NULL:
                order = memcmp(name, cell.name, min(name_size, cell.name_size)) or (
                    (name_size > cell.name_size) - (name_size < cell.name_size)
                )
            if order > 0:
                # The column may occur again later: counting it once would need a set.
                return -1
            versions[0] += 1
            cells[0] += order != 0
            name, name_size = cell.name, cell.name_size
        if versions[0] == 0:
            return -1
    if at < end and data[at] == DELETE_MARKER:
        at += 1
    if end - at < CHECKSUM_BYTES or data[at] != ROW_CHECKSUM:
        return -1
    return at + CHECKSUM_BYTES


def match_rows(bytes first not None, Py_ssize_t at, bytes second not None, Py_ssize_t other):
    """Count the rows that two pages share from these offsets on: (bytes, rows, cells, versions)."""
    cdef const byte* one = <const byte*>PyBytes_AS_STRING(first)
    cdef const byte* two = <const byte*>PyBytes_AS_STRING(second)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(first), left = PyBytes_GET_SIZE(second) - other
    cdef Py_ssize_t start = at, following, rows = 0, cells = 0, versions = 0, row_cells, row_versions
    if at < 0 or other < 0:
        return 0, 0, 0, 0
    while at < end:
        following = _count_row(one, at, end, &row_cells, &row_versions)
        if following < 0 or following - start > left:
            break
        if memcmp(one + at, two + other + at - start, following - at) != 0:
            break
        at = following
        rows += 1
        cells += row_cells
        versions += row_versions
    return at - start, rows, cells, versions
