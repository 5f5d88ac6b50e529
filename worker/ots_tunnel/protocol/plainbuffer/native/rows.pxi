# The rows of a page, one by one (see `offsets.rows_of_page`).

cdef Py_ssize_t _row_after(const byte* data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Offset after the row at `at`; -1 where only the reference can decide, as with an extension."""
    cdef Cell cell
    if at >= end or data[at] != ROW_KEY:
        return -1
    at += TAG_BYTES
    while at < end and data[at] == CELL:
        at = _scan_cell(data, at, end, &cell)
        if at < 0 or not cell.has_value or cell.op or cell.has_timestamp:
            return -1
    if at < end and data[at] == ROW_DATA:
        at += TAG_BYTES
        if at >= end or data[at] != CELL:
            return -1
        while at < end and data[at] == CELL:
            at = _scan_cell(data, at, end, &cell)
            if at < 0:
                return -1
    if at < end and data[at] == DELETE_MARKER:
        at += TAG_BYTES
    if end - at < CHECKSUM_BYTES or data[at] != ROW_CHECKSUM:
        return -1
    return at + CHECKSUM_BYTES


def rows_of_page(bytes page not None, Py_ssize_t header):
    """Every row of a page, each behind the page's header of so many bytes; None where only the reference can decide."""
    cdef const byte* data = <const byte*>PyBytes_AS_STRING(page)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(page), at = header, following
    cdef list rows = []
    cdef bytes row
    cdef byte* target
    if header < 0 or header > end:
        return None
    while at < end:
        following = _row_after(data, at, end)
        if following < 0:
            return None
        row = PyBytes_FromStringAndSize(NULL, header + following - at)
        target = <byte*>PyBytes_AS_STRING(row)
        memcpy(target, data, header)
        memcpy(target + header, data + at, following - at)
        rows.append(row)
        at = following
    return rows
