# Names, values and the class Column.

# Classes of the vocabulary; bound at first use, because the vocabulary imports this module.

cdef object _reference = None
cdef tuple _actions = None
cdef tuple _ops = None
cdef dict _markers = None
cdef object _sequence_type = None


cdef int _bind() except -1:
    global _reference, _actions, _ops, _markers, _sequence_type
    from ots_tunnel.model import Action, CellOp, Marker, SequenceInfo
    from ots_tunnel.protocol.record import PythonRecord

    _actions = (None, *Action)
    _ops = (CellOp.PUT, CellOp.DELETE_ALL_VERSIONS, None, CellOp.DELETE_ONE_VERSION, CellOp.INCREMENT)
    _markers = {marker.value: marker for marker in Marker}
    _sequence_type = SequenceInfo
    _reference = PythonRecord
    return 0


# Decoding.

cdef enum:
    INTEGER = 0x00
    DOUBLE = 0x01
    BOOLEAN = 0x02
    STRING = 0x03
    BLOB = 0x07
    # Variant and payload of a number; variant and inner length of a text or a blob.
    NUMBER_BYTES = 1 + 8
    BOOLEAN_BYTES = 1 + 1
    TEXT_AT = 1 + 4
    # Cached names, a power of two; of two names with the same place the later one stays.
    NAMES = 512

cdef object _MALFORMED = object()
cdef list _names = [None] * NAMES


cdef object _name(const byte* data, Py_ssize_t size):
    """A column's name; names repeat in every row, so they are cached."""
    cdef Py_ssize_t place = (size * 31 + (data[0] * 7 if size else 0) + (data[size - 1] if size else 0)) & (NAMES - 1)
    cdef tuple kept = <tuple>_names[place]
    if kept is not None:
        raw = <bytes>kept[0]
        if PyBytes_GET_SIZE(raw) == size and memcmp(PyBytes_AS_STRING(raw), data, size) == 0:
            return kept[1]
    raw = PyBytes_FromStringAndSize(<const char*>data, size)
    name = raw.decode()
    _names[place] = (raw, name)
    return name


cdef object _value(const byte* data, Py_ssize_t size):
    """A value of variant and payload; `_MALFORMED` if it is malformed. Raises UnicodeDecodeError."""
    cdef long long number
    cdef double real
    if size < 1:
        return _MALFORMED
    if data[0] == STRING and size >= TEXT_AT and _u32(data + 1) == size - TEXT_AT:
        return PyUnicode_DecodeUTF8(<const char*>data + TEXT_AT, size - TEXT_AT, NULL)
    if data[0] == INTEGER and size == NUMBER_BYTES:
        memcpy(&number, data + 1, 8)
        return PyLong_FromLongLong(number)
    if data[0] == DOUBLE and size == NUMBER_BYTES:
        memcpy(&real, data + 1, 8)
        return PyFloat_FromDouble(real)
    if data[0] == BOOLEAN and size == BOOLEAN_BYTES and data[1] < 2:
        return data[1] == 1
    if data[0] == BLOB and size >= TEXT_AT and _u32(data + 1) == size - TEXT_AT:
        return PyBytes_FromStringAndSize(<const char*>data + TEXT_AT, size - TEXT_AT)
    return _MALFORMED


@cython.no_gc
@cython.freelist(256)
cdef class Column:
    """One cell of a row or of a change; replaces `column.Column`."""

    cdef readonly object name
    cdef readonly object value
    cdef readonly object timestamp_ms
    cdef readonly object op

    __match_args__ = ("name", "value", "timestamp_ms", "op")

    def __init__(self, name, value, timestamp_ms=None, op=None):
        if _ops is None:
            _bind()
        self.name = name
        self.value = value
        self.timestamp_ms = timestamp_ms
        self.op = _ops[0] if op is None else op

    def __eq__(self, other):
        if type(other) is not Column:
            return NotImplemented
        cdef Column that = <Column>other
        return (
            self.name == that.name and self.value == that.value
            and self.timestamp_ms == that.timestamp_ms and self.op == that.op
        )

    def __hash__(self):
        return hash((self.name, self.value, self.timestamp_ms, self.op))

    def __repr__(self):
        return f"Column(name={self.name!r}, value={self.value!r}, timestamp_ms={self.timestamp_ms!r}, op={self.op!r})"

    def __reduce__(self):
        return Column, (self.name, self.value, self.timestamp_ms, self.op)


cdef inline Column _column(const Cell* cell, Column before, str name):
    """The column of a cell, None if it is malformed; `name` is None if it is not known yet."""
    if cell.op == 0 and not cell.has_value:
        return None
    cdef object value = None
    if cell.has_value:
        value = _value(cell.value, cell.value_size)
        if value is _MALFORMED:
            return None
    cdef Column column = Column.__new__(Column)
    column.name = _name(cell.name, cell.name_size) if name is None else name
    column.value = value
    column.op = _ops[cell.op]
    if cell.has_timestamp:
        # The cells of a row usually have the same timestamp.
        if before is not None and before.timestamp_ms is not None and before.timestamp_ms == cell.timestamp_ms:
            column.timestamp_ms = before.timestamp_ms
        else:
            column.timestamp_ms = PyLong_FromLongLong(cell.timestamp_ms)
    return column
