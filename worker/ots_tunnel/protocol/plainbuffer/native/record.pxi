# The class Record: a view of its page.

@cython.no_gc
@cython.freelist(1024)
cdef class Record:
    """One row change as a view of its page; replaces `record.Record`."""

    cdef readonly object action
    cdef readonly bytes origin
    cdef bytes _page
    cdef Py_ssize_t _start
    cdef Py_ssize_t _size
    cdef bytes _key
    cdef tuple _columns
    cdef bint _sound

    def __init__(self, action, body, origin=None):
        if _reference is None:
            _bind()
        self.action = action
        self.origin = origin
        self._page = body if type(body) is bytes else bytes(body)
        self._start = 0
        self._size = PyBytes_GET_SIZE(self._page)

    cdef inline const byte* _data(self) noexcept:
        return <const byte*>PyBytes_AS_STRING(self._page) + self._start

    def _python(self):
        return _reference(self.action, self.body, self.origin)

    cdef inline bint _is_sound_throughout(self) noexcept:
        """Whether every checksum is right, compared once; False also where only the reference can decide."""
        if not self._sound:
            self._sound = _check_row(self._data(), self._size) >= 0
        return self._sound

    @property
    def body(self):
        """PlainBuffer with header and exactly one row."""
        if self._size == PyBytes_GET_SIZE(self._page):
            return self._page
        return PyBytes_FromStringAndSize(<const char*>self._data(), self._size)

    @property
    def key(self):
        """Wire bytes of the key cells."""
        cdef Py_ssize_t end
        if self._key is None:
            end = _scan_key(self._data(), self._size)
            if end < 0:
                return self._python().key
            self._key = PyBytes_FromStringAndSize(<const char*>self._data() + FIRST_CELL_AT, end - FIRST_CELL_AT)
        return self._key

    @property
    def primary_key(self):
        """The key columns in the table's order; the row's checksums are verified."""
        cdef const byte* data = self._data()
        cdef Py_ssize_t end = _scan_key(data, self._size), at = FIRST_CELL_AT
        cdef Cell cell
        cdef list columns = []
        if not self._is_sound_throughout():
            return self._python().primary_key
        try:
            while at < end:
                at = _scan_cell(data, at, end, &cell)
                value = _value(cell.value, cell.value_size)
                if value is _MALFORMED and cell.value_size == 1:
                    value = _markers.get(cell.value[0], _MALFORMED)
                if value is _MALFORMED or type(value) is bool or type(value) is float:
                    return self._python().primary_key
                columns.append((_name(cell.name, cell.name_size), value))
        except UnicodeDecodeError:
            return self._python().primary_key
        return tuple(columns)

    @property
    def columns(self):
        """The cells, decoded and their checksums verified at the first access."""
        if self._columns is None:
            try:
                self._columns = self._decode()
            except UnicodeDecodeError:
                pass
            if self._columns is None:
                self._columns = self._python().columns
        return self._columns

    def decode_columns(self):
        """The cells, decoded and not kept with the record."""
        cdef tuple columns = self._columns
        if columns is None:
            try:
                columns = self._decode()
            except UnicodeDecodeError:
                pass
        return self._python().columns if columns is None else columns

    cdef tuple _decode(self):
        """Key, cells, marker and checksum in one pass; None if any part is malformed or a checksum is wrong."""
        cdef const byte* data = self._data()
        cdef Py_ssize_t size = self._size, end = _scan_key(data, size), at = FIRST_CELL_AT
        cdef byte crc = 0
        cdef Cell cell
        cdef Column column = None
        cdef list columns = []
        if end < 0:
            return None
        while at < end:
            at = _scan_cell(data, at, end, &cell)
            if not _is_sound(&cell):
                return None
            crc = TABLES[0][crc ^ cell.checksum]
        if data[at] == ROW_DATA:
            at += 1
            while at < size and data[at] == CELL:
                at = _scan_cell(data, at, size, &cell)
                if at < 0 or not _is_sound(&cell):
                    return None
                crc = TABLES[0][crc ^ cell.checksum]
                column = _column(&cell, column, None)
                if column is None:
                    return None
                columns.append(column)
            if column is None:
                return None
        return tuple(columns) if _row_end(data, at, size, crc) >= 0 else None

    def column(self, str name not None):
        """The first cell of this name, None if there is no such cell; the others are not decoded.

        Verifies the checksum of that cell, or of the whole row if there is no such cell.
        """
        cdef const byte* data = self._data()
        cdef Py_ssize_t at = _scan_key(data, self._size), size = self._size
        cdef Py_ssize_t wanted_size = 0
        cdef const char* wanted = PyUnicode_AsUTF8AndSize(name, &wanted_size)
        cdef Cell cell
        cdef Column column
        if at < 0:
            return self._python().column(name)
        if data[at] != ROW_DATA:
            return None if self._is_sound_throughout() else self._python().column(name)
        at += 1
        while at < size and data[at] == CELL:
            at = _scan_cell(data, at, size, &cell)
            if at < 0:
                return self._python().column(name)
            if cell.name_size == wanted_size and not memcmp(cell.name, wanted, wanted_size):
                try:
                    column = _column(&cell, None, name) if _is_sound(&cell) else None
                except UnicodeDecodeError:
                    column = None
                return column if column is not None else self._python().column(name)
        return None if self._is_sound_throughout() else self._python().column(name)

    @property
    def sequence(self):
        """Position in the stream, None for base data."""
        cdef const byte* tail
        cdef int epoch, index
        cdef long long timestamp_us
        if not _ends_in_sequence(self._data(), self._size):
            return self._python().sequence
        tail = self._data() + self._size - TAIL_BYTES
        memcpy(&epoch, tail + EPOCH_AT, 4)
        memcpy(&timestamp_us, tail + TIMESTAMP_AT, 8)
        memcpy(&index, tail + ROW_INDEX_AT, 4)
        return _sequence_type(epoch, timestamp_us, index)

    @property
    def write_body(self):
        """The row without its extension, as a write needs it; its checksums are verified."""
        cdef Py_ssize_t tail = _check_row(self._data(), self._size)
        if tail < 0:
            return self._python().write_body
        if tail + CHECKSUM_BYTES == self._size:
            return self.body
        cdef bytes body = PyBytes_FromStringAndSize(NULL, tail + CHECKSUM_BYTES)
        _copy_stripped(<byte*>PyBytes_AS_STRING(body), self._data(), self._size, tail)
        return body

    @property
    def origin_columns(self):
        """Previous values of the stream's origin columns; empty if the record has none."""
        return self._python().origin_columns

    @property
    def size(self):
        """Bytes of the record on the wire."""
        return self._size + (PyBytes_GET_SIZE(self.origin) if self.origin is not None else 0)

    def __eq__(self, other):
        if type(other) is not Record:
            return NotImplemented
        return (self.action, self.body, self.origin) == (other.action, other.body, other.origin)

    def __hash__(self):
        return hash((self.action, self.body, self.origin))

    def __repr__(self):
        return f"Record({self.action.name}, {self.size} bytes)"

    def __reduce__(self):
        return Record, (self.action, self.body, self.origin)
