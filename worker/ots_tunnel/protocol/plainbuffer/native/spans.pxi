# Rows as spans (see `spans`).

cdef enum:
    # Key cells that are handled here; a table has four at most.
    MOST_KEY_CELLS = 64

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        object (*tp_alloc)(PyTypeObject* kind, Py_ssize_t size)

cdef PyTypeObject* _cell_span = NULL
cdef PyTypeObject* _row_span = NULL


cdef int _bind_spans() except -1:
    global _cell_span, _row_span
    from ots_tunnel.protocol.plainbuffer.spans import CellSpan, RowSpan

    # Classes of a module that is never unloaded.
    _cell_span = <PyTypeObject*>CellSpan
    _row_span = <PyTypeObject*>RowSpan
    return 0


cdef inline void _put(object target, Py_ssize_t place, object item):
    """Fill a place of a new tuple."""
    Py_INCREF(item)
    PyTuple_SET_ITEM(target, place, item)


cdef inline object _bytes(const byte* data, Py_ssize_t size):
    return PyBytes_FromStringAndSize(<const char*>data, size)


cdef list _span_names = [None] * NAMES


cdef object _span_name(const byte* data, Py_ssize_t size):
    """A column's name as bytes; see `_name`."""
    cdef Py_ssize_t place = (size * 31 + (data[0] * 7 if size else 0) + (data[size - 1] if size else 0)) & (NAMES - 1)
    kept = _span_names[place]
    if kept is not None and PyBytes_GET_SIZE(kept) == size and memcmp(PyBytes_AS_STRING(kept), data, size) == 0:
        return kept
    kept = _bytes(data, size)
    _span_names[place] = kept
    return kept


cdef object _span_of(const Cell* cell, const byte* start, Py_ssize_t size, object before):
    """A `CellSpan`; `before` is the previous one, or None."""
    cdef object span = _cell_span.tp_alloc(_cell_span, 6)
    cdef object timestamp = None
    if cell.has_timestamp:
        # The cells of a row usually have the same timestamp.
        if before is not None and before[2] is not None and <long long>before[2] == cell.timestamp_ms:
            timestamp = before[2]
        else:
            timestamp = PyLong_FromLongLong(cell.timestamp_ms)
    _put(span, 0, _span_name(cell.name, cell.name_size))
    _put(span, 1, <int>cell.op)
    _put(span, 2, timestamp)
    _put(span, 3, _bytes(start, size))
    _put(span, 4, <int>cell.checksum)
    _put(span, 5, _bytes(cell.value, cell.value_size) if cell.has_value else None)
    return span


def scan_row(buf not None, Py_ssize_t offset, bint verify):
    """The `RowSpan` at an offset; None for a row with an extension and where only the reference can decide."""
    if type(buf) is not bytes or offset < 0:
        return None
    if _cell_span is NULL:
        _bind_spans()
    cdef const byte* data = <const byte*>PyBytes_AS_STRING(buf)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(buf), at = offset + TAG_BYTES, start, key_end, count = 0
    cdef byte[MOST_KEY_CELLS] key_checksums
    cdef byte crc = 0, mark = 0
    cdef Cell cell
    cdef object before = None
    cdef list cells = []
    if at >= end or data[offset] != ROW_KEY:
        return None
    while at < end and data[at] == CELL:
        at = _scan_cell(data, at, end, &cell)
        if at < 0 or not cell.has_value or cell.op or cell.has_timestamp or count == MOST_KEY_CELLS:
            return None
        if verify and not _is_sound(&cell):
            return None
        key_checksums[count] = cell.checksum
        crc = TABLES[0][crc ^ cell.checksum]
        count += 1
    key_end = at
    if at < end and data[at] == ROW_DATA:
        at += 1
        while at < end and data[at] == CELL:
            start = at
            at = _scan_cell(data, start, end, &cell)
            if at < 0 or (verify and not _is_sound(&cell)):
                return None
            crc = TABLES[0][crc ^ cell.checksum]
            before = _span_of(&cell, data + start, at - start, before)
            cells.append(before)
        if before is None:
            return None
    if at < end and data[at] == DELETE_MARKER:
        mark = 1
        at += 1
    if end - at < CHECKSUM_BYTES or data[at] != ROW_CHECKSUM or (verify and data[at + 1] != TABLES[0][crc ^ mark]):
        return None
    cdef object row = _row_span.tp_alloc(_row_span, 6)
    _put(row, 0, at + CHECKSUM_BYTES)
    _put(row, 1, _bytes(data + offset + TAG_BYTES, key_end - offset - TAG_BYTES))
    _put(row, 2, _bytes(key_checksums, count))
    _put(row, 3, tuple(cells))
    _put(row, 4, mark == 1)
    _put(row, 5, None)
    return row
