# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled twin of `record`, of `spans.scan_row`, of the page's framing and of the batch's encoding.

It reads what is well-formed and hands everything else to the Python reference, which then says what is wrong: so
there is one set of rules and one set of errors. Bytes are those of `tags` and of docs/protocol.md 2.2 and 3.1.

A record is a view of its page: columns are decoded when they are asked for. Records and columns cannot be part of a
cycle, so the garbage collector does not track them.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_FromDouble
from cpython.long cimport PyLong_FromLongLong
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.string cimport memcmp, memcpy

ctypedef unsigned char byte

cdef enum:
    ROW_KEY = 0x01
    ROW_DATA = 0x02
    CELL = 0x03
    CELL_NAME = 0x04
    CELL_VALUE = 0x05
    CELL_OP = 0x06
    CELL_TIMESTAMP = 0x07
    DELETE_MARKER = 0x08
    ROW_CHECKSUM = 0x09
    CELL_CHECKSUM = 0x0A
    # An extension with a sequence and nothing else, and the row checksum behind it.
    EXTENSION_BYTES = 29
    TAIL_BYTES = 31

cdef byte[11] SEQUENCE_START = [0x0B, 24, 0, 0, 0, 0x0C, 19, 0, 0, 0, 0x0D]


# Checksums: CRC-8/SMBUS, eight bytes at a time.

cdef byte[8][256] TABLES

cdef void _fill_tables() noexcept:
    cdef int value, bit, number
    for number in range(256):
        value = number
        for bit in range(8):
            value = ((value << 1) ^ 0x07) & 0xFF if value & 0x80 else (value << 1) & 0xFF
        TABLES[0][number] = <byte>value
    for bit in range(1, 8):
        for number in range(256):
            TABLES[bit][number] = TABLES[0][TABLES[bit - 1][number]]

_fill_tables()


cdef inline byte _crc(const byte* data, Py_ssize_t size, byte crc) noexcept nogil:
    while size >= 8:
        crc = (TABLES[7][crc ^ data[0]] ^ TABLES[6][data[1]] ^ TABLES[5][data[2]] ^ TABLES[4][data[3]]
               ^ TABLES[3][data[4]] ^ TABLES[2][data[5]] ^ TABLES[1][data[6]] ^ TABLES[0][data[7]])
        data += 8
        size -= 8
    while size > 0:
        crc = TABLES[0][crc ^ data[0]]
        data += 1
        size -= 1
    return crc


def crc8(const byte[::1] data not None, byte crc=0):
    """CRC-8/SMBUS of `data`, continued from `crc`."""
    return _crc(&data[0], data.shape[0], crc) if data.shape[0] else crc


# Cells.

cdef struct Cell:
    const byte* name
    Py_ssize_t name_size
    const byte* value
    Py_ssize_t value_size
    bint has_value
    bint has_timestamp
    long long timestamp_ms
    byte op
    byte checksum


cdef inline unsigned int _u32(const byte* data) noexcept nogil:
    cdef unsigned int value
    memcpy(&value, data, 4)
    return value


cdef Py_ssize_t _scan_cell(const byte* data, Py_ssize_t at, Py_ssize_t end, Cell* cell) noexcept nogil:
    """Offset after the cell at `at`, -1 where there is none."""
    cdef Py_ssize_t size
    if end - at < 6 or data[at] != CELL or data[at + 1] != CELL_NAME:
        return -1
    size = _u32(data + at + 2)
    at += 6
    if size > end - at:
        return -1
    cell.name = data + at
    cell.name_size = size
    at += size
    cell.has_value = cell.has_timestamp = False
    cell.op = 0
    if end - at >= 5 and data[at] == CELL_VALUE:
        size = _u32(data + at + 1)
        at += 5
        if size > end - at:
            return -1
        cell.has_value = True
        cell.value = data + at
        cell.value_size = size
        at += size
    if end - at >= 2 and data[at] == CELL_OP:
        cell.op = data[at + 1]
        if cell.op != 1 and cell.op != 3 and cell.op != 4:
            return -1
        at += 2
    if end - at >= 9 and data[at] == CELL_TIMESTAMP:
        cell.has_timestamp = True
        memcpy(&cell.timestamp_ms, data + at + 1, 8)
        at += 9
    if end - at < 2 or data[at] != CELL_CHECKSUM:
        return -1
    cell.checksum = data[at + 1]
    return at + 2


cdef inline bint _is_sound(const Cell* cell) noexcept nogil:
    cdef byte crc = _crc(cell.name, cell.name_size, 0)
    if cell.has_value:
        crc = _crc(cell.value, cell.value_size, crc)
    if cell.has_timestamp:
        crc = _crc(<const byte*>&cell.timestamp_ms, 8, crc)
    if cell.op:
        crc = _crc(&cell.op, 1, crc)
    return crc == cell.checksum


cdef Py_ssize_t _scan_key(const byte* data, Py_ssize_t end) noexcept nogil:
    """Offset after the key section of the row behind the header, -1 where there is none."""
    cdef Cell cell
    cdef Py_ssize_t at = 5
    if end < 7 or data[0] != 0x75 or data[1] or data[2] or data[3] or data[4] != ROW_KEY:
        return -1
    while at < end and data[at] == CELL:
        at = _scan_cell(data, at, end, &cell)
        if at < 0 or not cell.has_value or cell.op or cell.has_timestamp:
            return -1
    return at if at < end else -1


cdef bint _ends_in_sequence(const byte* data, Py_ssize_t size) noexcept nogil:
    """See `sequence.ends_in_sequence`."""
    return (
        size >= TAIL_BYTES
        and memcmp(data + size - 31, SEQUENCE_START, 11) == 0
        and data[size - 16] == 0x0E
        and data[size - 7] == 0x0F
        and data[size - 2] == ROW_CHECKSUM
        and data[size - 4] != CELL_CHECKSUM
        and data[size - 3] != DELETE_MARKER
    )


cdef Py_ssize_t _row_end(const byte* data, Py_ssize_t at, Py_ssize_t size, byte crc) noexcept nogil:
    """Offset of the extension, or of the row checksum where there is none, from the offset behind the cells.

    -1 where anything else follows, or the checksum over the cells' `crc` and the marker is another one.
    """
    cdef byte mark = 0
    cdef Py_ssize_t tail
    if at < size and data[at] == DELETE_MARKER:
        mark = 1
        at += 1
    tail = at
    if size - at == TAIL_BYTES and _ends_in_sequence(data, size):
        at += EXTENSION_BYTES
    if size - at != 2 or data[at] != ROW_CHECKSUM or data[at + 1] != TABLES[0][crc ^ mark]:
        return -1
    return tail


cdef Py_ssize_t _check_row(const byte* data, Py_ssize_t size) noexcept nogil:
    """Offset of the extension, or of the row checksum where there is none; -1 unless the row is sound throughout."""
    cdef Cell cell
    cdef Py_ssize_t key_end = _scan_key(data, size), at = 5
    cdef byte crc = 0
    if key_end < 0:
        return -1
    while at < key_end:
        at = _scan_cell(data, at, key_end, &cell)
        if at < 0 or not _is_sound(&cell):
            return -1
        crc = TABLES[0][crc ^ cell.checksum]
    if data[at] == ROW_DATA:
        at += 1
        if at >= size or data[at] != CELL:
            return -1
        while at < size and data[at] == CELL:
            at = _scan_cell(data, at, size, &cell)
            if at < 0 or not _is_sound(&cell):
                return -1
            crc = TABLES[0][crc ^ cell.checksum]
    return _row_end(data, at, size, crc)


# What the compiled code takes from the vocabulary; bound at first use, because the vocabulary imports this module.

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

cdef object _MALFORMED = object()
cdef list _names = [None] * 512


cdef object _name(const byte* data, Py_ssize_t size):
    """A column's name; names repeat for every row, so they are kept."""
    cdef Py_ssize_t place = (size * 31 + (data[0] * 7 if size else 0) + (data[size - 1] if size else 0)) & 511
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
    """A value of variant and payload; `_MALFORMED` for everything else, raises UnicodeDecodeError."""
    cdef long long number
    cdef double real
    if size < 1:
        return _MALFORMED
    if data[0] == 0x03 and size >= 5 and _u32(data + 1) == size - 5:
        return PyUnicode_DecodeUTF8(<const char*>data + 5, size - 5, NULL)
    if data[0] == 0x00 and size == 9:
        memcpy(&number, data + 1, 8)
        return PyLong_FromLongLong(number)
    if data[0] == 0x01 and size == 9:
        memcpy(&real, data + 1, 8)
        return PyFloat_FromDouble(real)
    if data[0] == 0x02 and size == 2 and data[1] < 2:
        return data[1] == 1
    if data[0] == 0x07 and size >= 5 and _u32(data + 1) == size - 5:
        return PyBytes_FromStringAndSize(<const char*>data + 5, size - 5)
    return _MALFORMED


@cython.no_gc
@cython.freelist(256)
cdef class Column:
    """One cell of a row or of a change; takes the place of `column.Column`."""

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
    """The column of a cell, None where it is malformed; `name` is None where it is not known yet."""
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
        # The cells of a row are usually of one time.
        if before is not None and before.timestamp_ms is not None and before.timestamp_ms == cell.timestamp_ms:
            column.timestamp_ms = before.timestamp_ms
        else:
            column.timestamp_ms = PyLong_FromLongLong(cell.timestamp_ms)
    return column


@cython.no_gc
@cython.freelist(1024)
cdef class Record:
    """One row change as a view of its page; see `record.Record`, whose place it takes."""

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
        """Whether every checksum is right, looked at once; False also where only the reference can tell."""
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
            self._key = PyBytes_FromStringAndSize(<const char*>self._data() + 5, end - 5)
        return self._key

    @property
    def primary_key(self):
        """The key columns in the table's order; the row's checksums are verified."""
        cdef const byte* data = self._data()
        cdef Py_ssize_t end = _scan_key(data, self._size), at = 5
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

    cdef tuple _decode(self):
        """Key, cells, marker and checksum in one pass; None where the row is not sound throughout."""
        cdef const byte* data = self._data()
        cdef Py_ssize_t size = self._size, end = _scan_key(data, size), at = 5
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
        """The first cell of this name, None where there is none; the others are not decoded.

        The checksum that is verified is the cell's own, or where there is none of this name the row's.
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
        memcpy(&epoch, tail + 11, 4)
        memcpy(&timestamp_us, tail + 16, 8)
        memcpy(&index, tail + 25, 4)
        return _sequence_type(epoch, timestamp_us, index)

    @property
    def write_body(self):
        """The row without its extension: what a write takes; its checksums are verified."""
        cdef Py_ssize_t tail = _check_row(self._data(), self._size)
        if tail < 0:
            return self._python().write_body
        if tail + 2 == self._size:
            return self.body
        cdef bytes body = PyBytes_FromStringAndSize(NULL, tail + 2)
        _copy_stripped(<byte*>PyBytes_AS_STRING(body), self._data(), self._size, tail)
        return body

    @property
    def origin_columns(self):
        """Previous values of the stream's origin columns; empty where there are none."""
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


cdef inline void _copy_stripped(byte* target, const byte* row, Py_ssize_t size, Py_ssize_t tail) noexcept nogil:
    memcpy(target, row, tail)
    target[tail] = row[size - 2]
    target[tail + 1] = row[size - 1]


# Messages.

cdef inline Py_ssize_t _varint(const byte* data, Py_ssize_t at, Py_ssize_t end, unsigned long long* value) noexcept nogil:
    """Offset after the number at `at`, -1 where it does not end."""
    cdef int shift = 0
    value[0] = 0
    while at < end and shift < 64:
        value[0] |= <unsigned long long>(data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return at
        shift += 7
    return -1


cdef inline Py_ssize_t _block(const byte* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* start) noexcept nogil:
    """Offset after the length-delimited field whose length stands at `at`; its content begins at `start`."""
    cdef unsigned long long size
    at = _varint(data, at, end, &size)
    if at < 0 or size > <unsigned long long>(end - at):
        return -1
    start[0] = at
    return at + <Py_ssize_t>size


cdef Record _read_record(bytes page, const byte* data, Py_ssize_t at, Py_ssize_t end):
    """The record of one field, None where it is not the usual one."""
    cdef unsigned long long action = 0
    cdef Py_ssize_t start = 0, body = -1, body_end = 0, origin = 0, origin_end = 0
    while at < end:
        if data[at] == 0x08:
            at = _varint(data, at + 1, end, &action)
        elif data[at] == 0x12:
            at = body_end = _block(data, at + 1, end, &body)
        elif data[at] == 0x1A:
            at = origin_end = _block(data, at + 1, end, &origin)
        else:
            return None
        if at < 0:
            return None
    if body < 0 or not 1 <= action <= 3:
        return None
    cdef Record record = Record.__new__(Record)
    record.action = _actions[action]
    record._page = page
    record._start = body
    record._size = body_end - body
    if origin_end > origin:
        record.origin = PyBytes_FromStringAndSize(<const char*>data + origin, origin_end - origin)
    return record


def read_page(bytes page not None):
    """Records, next token and may_more of a ReadRecordsResponse; None where only the reference can tell."""
    if _reference is None:
        _bind()
    cdef const byte* data = <const byte*>PyBytes_AS_STRING(page)
    cdef Py_ssize_t at = 0, end = PyBytes_GET_SIZE(page), start = 0
    cdef unsigned long long number = 0
    cdef list records = []
    cdef Record record
    token = may_more = None
    while at < end:
        if data[at] == 0x0A:
            at = _block(data, at + 1, end, &start)
            if at < 0:
                return None
            record = _read_record(page, data, start, at)
            if record is None:
                return None
            records.append(record)
        elif data[at] == 0x12:
            at = _block(data, at + 1, end, &start)
            if at < 0:
                return None
            try:
                token = PyUnicode_DecodeUTF8(<const char*>data + start, at - start, NULL)
            except UnicodeDecodeError:
                return None
        elif data[at] == 0x18:
            at = _varint(data, at + 1, end, &number)
            if at < 0:
                return None
            may_more = number != 0
        else:
            return None
    return None if token is None else (records, token, may_more)


def count_actions(list records not None):
    """How many records of each action there are, those that there are; None where the reference has to look."""
    if _actions is None:
        _bind()
    cdef Py_ssize_t index, puts = 0, updates = 0, deletes = 0
    cdef object put = _actions[1], update = _actions[2], delete = _actions[3], record, action
    for index in range(len(records)):
        record = records[index]
        if type(record) is not Record:
            return None
        action = (<Record>record).action
        if action is put:
            puts += 1
        elif action is update:
            updates += 1
        elif action is delete:
            deletes += 1
        else:
            return None
    return {action: count for action, count in ((put, puts), (update, updates), (delete, deletes)) if count}


def total_size(list records not None):
    """Bytes of all records on the wire; None where the reference has to look."""
    cdef Py_ssize_t index, total = 0
    cdef object record
    for index in range(len(records)):
        record = records[index]
        if type(record) is not Record:
            return None
        total += (<Record>record)._size
        if (<Record>record).origin is not None:
            total += PyBytes_GET_SIZE((<Record>record).origin)
    return total


cdef inline int _varint_size(Py_ssize_t number) noexcept nogil:
    cdef int size = 1
    while number >= 0x80:
        number >>= 7
        size += 1
    return size


cdef inline byte* _put_varint(byte* target, Py_ssize_t number) noexcept nogil:
    while number >= 0x80:
        target[0] = <byte>(number & 0x7F | 0x80)
        target += 1
        number >>= 7
    target[0] = <byte>number
    return target + 1


cdef inline byte* _put_block(byte* target, byte tag, Py_ssize_t size) noexcept nogil:
    target[0] = tag
    return _put_varint(target + 1, size)


cdef inline Py_ssize_t _row_size(Py_ssize_t body) noexcept nogil:
    # type; row_change; condition of two bytes: rows are written whatever is there
    return 2 + 1 + _varint_size(body) + body + 4


def encode_batch_write(str table not None, list records not None):
    """A BatchWriteRowRequest that writes records of a tunnel as they are, without their extensions.

    None where one of them is not sound throughout: the reference says what is wrong with it.
    """
    cdef bytes name = table.encode()
    cdef Py_ssize_t name_size = PyBytes_GET_SIZE(name), inner = 1 + _varint_size(name_size) + name_size
    cdef Py_ssize_t count = len(records), index, tail, size
    cdef Record record
    cdef byte* target
    cdef const byte* row
    cdef bytearray tails = bytearray(count * sizeof(Py_ssize_t))
    cdef Py_ssize_t* tail_of = <Py_ssize_t*><char*>tails
    for index in range(count):
        record = <Record?>records[index]
        tail = _check_row(record._data(), record._size)
        if tail < 0:
            return None
        tail_of[index] = tail
        size = _row_size(tail + 2)
        inner += 1 + _varint_size(size) + size
    cdef bytes message = PyBytes_FromStringAndSize(NULL, 1 + _varint_size(inner) + inner)
    target = _put_block(<byte*>PyBytes_AS_STRING(message), 0x0A, inner)
    target = _put_block(target, 0x0A, name_size)
    memcpy(target, PyBytes_AS_STRING(name), name_size)
    target += name_size
    for index in range(count):
        record = <Record>records[index]
        tail = tail_of[index]
        target = _put_block(target, 0x12, _row_size(tail + 2))
        target[0] = 0x08
        target[1] = <byte>(<int>record.action)
        target = _put_block(target + 2, 0x12, tail + 2)
        row = record._data()
        _copy_stripped(target, row, record._size, tail)
        target += tail + 2
        target[0] = 0x1A
        target[1] = 2
        target[2] = 0x08
        target[3] = 0
        target += 4
    return message


def all_rows_stored(bytes answer not None, Py_ssize_t count):
    """Whether a BatchWriteRowResponse says that each of `count` rows of one table is stored."""
    cdef const byte* data = <const byte*>PyBytes_AS_STRING(answer)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(answer), at = 0, start = 0, row_end
    cdef Py_ssize_t stored = 0
    if end == 0 or data[0] != 0x0A or _block(data, 1, end, &at) != end:
        return False
    while at < end:
        if data[at] == 0x0A:
            at = _block(data, at + 1, end, &start)
        elif data[at] == 0x12:
            row_end = _block(data, at + 1, end, &start)
            # is_ok is the first field of a row's answer
            if row_end < 0 or row_end - start < 2 or data[start] != 0x08 or data[start + 1] != 1:
                return False
            stored += 1
            at = row_end
        else:
            return False
        if at < 0:
            return False
    return stored == count


def plan_requests(list records not None, Py_ssize_t max_rows, Py_ssize_t max_bytes, Py_ssize_t max_cells, int max_waves):
    """Cut a page into requests of records that can be written as they are; see `sinks.requests`.

    Returns waves of requests, no key twice within a wave and a key's records in wave after wave; None where a record
    is large, empty or malformed, or where keys repeat too often.
    """
    cdef Record record
    cdef Py_ssize_t key_end, size, wave, end = len(records), index
    cdef const byte* data
    cdef dict seen = {}
    # the request of each wave that is being filled
    cdef list waves = [], current = []
    cdef list rows
    cdef Py_ssize_t[64] bytes_of
    if max_waves > 64:
        max_waves = 64
    for index in range(end):
        record = <Record?>records[index]
        data = record._data()
        key_end = _scan_key(data, record._size)
        # 24: what a row takes in a request beside its body; 11: the least a cell takes
        size = record._size + 24
        if key_end < 0 or size > max_bytes or record._size > max_cells * 11:
            return None
        if data[key_end] != ROW_DATA and <int>record.action == 2:
            return None
        if record._key is None:
            record._key = PyBytes_FromStringAndSize(<const char*>data + 5, key_end - 5)
        wave = 0
        before = seen.get(record._key)
        if before is not None:
            wave = <Py_ssize_t>before + 1
            if wave >= max_waves:
                return None
        seen[record._key] = wave
        if wave == len(waves):
            rows = []
            waves.append([rows])
            current.append(rows)
            bytes_of[wave] = 0
        rows = <list>current[wave]
        if len(rows) >= max_rows or (rows and bytes_of[wave] + size > max_bytes):
            rows = []
            (<list>waves[wave]).append(rows)
            current[wave] = rows
            bytes_of[wave] = 0
        rows.append(record)
        bytes_of[wave] += size
    return waves


# Rows as spans; see `spans`.

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


cdef list _span_names = [None] * 512


cdef object _span_name(const byte* data, Py_ssize_t size):
    """A column's name as bytes; see `_name`."""
    cdef Py_ssize_t place = (size * 31 + (data[0] * 7 if size else 0) + (data[size - 1] if size else 0)) & 511
    kept = _span_names[place]
    if kept is not None and PyBytes_GET_SIZE(kept) == size and memcmp(PyBytes_AS_STRING(kept), data, size) == 0:
        return kept
    kept = _bytes(data, size)
    _span_names[place] = kept
    return kept


cdef object _span_of(const Cell* cell, const byte* start, Py_ssize_t size, object before):
    """A `CellSpan`; `before` is the one in front of it, or None."""
    cdef object span = _cell_span.tp_alloc(_cell_span, 6)
    cdef object timestamp = None
    if cell.has_timestamp:
        # The cells of a row are usually of one time.
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
    """The `RowSpan` at an offset; None for rows with an extension and wherever only the reference can tell."""
    if type(buf) is not bytes or offset < 0:
        return None
    if _cell_span is NULL:
        _bind_spans()
    cdef const byte* data = <const byte*>PyBytes_AS_STRING(buf)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(buf), at = offset + 1, start, key_end, count = 0
    cdef byte[64] key_checksums
    cdef byte crc = 0, mark = 0
    cdef Cell cell
    cdef object before = None
    cdef list cells = []
    if at >= end or data[offset] != ROW_KEY:
        return None
    while at < end and data[at] == CELL:
        at = _scan_cell(data, at, end, &cell)
        if at < 0 or not cell.has_value or cell.op or cell.has_timestamp or count == 64:
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
    if end - at < 2 or data[at] != ROW_CHECKSUM or (verify and data[at + 1] != TABLES[0][crc ^ mark]):
        return None
    cdef object row = _row_span.tp_alloc(_row_span, 6)
    _put(row, 0, at + 2)
    _put(row, 1, _bytes(data + offset + 1, key_end - offset - 1))
    _put(row, 2, _bytes(key_checksums, count))
    _put(row, 3, tuple(cells))
    _put(row, 4, mark == 1)
    _put(row, 5, None)
    return row


# Comparing tables.

cdef Py_ssize_t _count_row(
    const byte* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* cells, Py_ssize_t* versions
) noexcept nogil:
    """Offset after the row at `at`, with its columns and versions counted; -1 where only the reference can tell."""
    cdef Cell cell
    cdef const byte* name = NULL
    cdef Py_ssize_t name_size = 0
    cdef int order
    cells[0] = versions[0] = 0
    if at >= end or data[at] != ROW_KEY:
        return -1
    at += 1
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
                # A column may come again later: counting it once needs a set.
                return -1
            versions[0] += 1
            cells[0] += order != 0
            name, name_size = cell.name, cell.name_size
        if versions[0] == 0:
            return -1
    if at < end and data[at] == DELETE_MARKER:
        at += 1
    if end - at < 2 or data[at] != ROW_CHECKSUM:
        return -1
    return at + 2


def match_rows(bytes first not None, Py_ssize_t at, bytes second not None, Py_ssize_t other):
    """How far two pages hold the same rows from these offsets on: (bytes, rows, cells, versions)."""
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
