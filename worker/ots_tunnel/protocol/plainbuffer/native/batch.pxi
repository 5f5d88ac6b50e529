# What is written: a batch of records, its answer, and the plan of a page's requests.

cdef enum:
    # Keys of protobuf: field number and wire type.
    # BatchWriteRowRequest: tables. Its table: table_name, rows. Its row: type, row_change, condition.
    REQUEST_TABLE = 1 << 3 | 2
    TABLE_NAME = 1 << 3 | 2
    TABLE_ROW = 2 << 3 | 2
    ROW_TYPE = 1 << 3 | 0
    ROW_CHANGE = 2 << 3 | 2
    ROW_CONDITION = 3 << 3 | 2
    # Condition: row_existence, and its value IGNORE: rows are written whatever is there.
    CONDITION_EXISTENCE = 1 << 3 | 0
    EXISTENCE_IGNORE = 0
    CONDITION_BYTES = 2
    # BatchWriteRowResponse: tables. Its table: table_name, rows. Its row: is_ok.
    ANSWER_TABLE = 1 << 3 | 2
    ANSWER_TABLE_NAME = 1 << 3 | 2
    ANSWER_ROW = 2 << 3 | 2
    ROW_IS_OK = 1 << 3 | 0
    # Upper bound of what a row takes in a request beside its body.
    ROW_FRAME_BYTES = 24
    # Least bytes of a cell: start, a name of one byte, op, checksum.
    LEAST_CELL_BYTES = CELL_START_BYTES + 1 + OP_BYTES + CHECKSUM_BYTES
    ACTION_UPDATE = 2
    # Waves that a plan can hold.
    MOST_WAVES = 64

cdef inline void _copy_stripped(byte* target, const byte* row, Py_ssize_t size, Py_ssize_t tail) noexcept nogil:
    memcpy(target, row, tail)
    target[tail] = row[size - 2]
    target[tail + 1] = row[size - 1]


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
    return 2 + 1 + _varint_size(body) + body + 2 + CONDITION_BYTES


def encode_batch_write(str table not None, list records not None):
    """A BatchWriteRowRequest that writes records of a tunnel unchanged, without their extensions.

    None if a record is malformed or has a wrong checksum: the reference raises the error.
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
        size = _row_size(tail + CHECKSUM_BYTES)
        inner += 1 + _varint_size(size) + size
    cdef bytes message = PyBytes_FromStringAndSize(NULL, 1 + _varint_size(inner) + inner)
    target = _put_block(<byte*>PyBytes_AS_STRING(message), REQUEST_TABLE, inner)
    target = _put_block(target, TABLE_NAME, name_size)
    memcpy(target, PyBytes_AS_STRING(name), name_size)
    target += name_size
    for index in range(count):
        record = <Record>records[index]
        tail = tail_of[index]
        target = _put_block(target, TABLE_ROW, _row_size(tail + CHECKSUM_BYTES))
        target[0] = ROW_TYPE
        target[1] = <byte>(<int>record.action)
        target = _put_block(target + 2, ROW_CHANGE, tail + CHECKSUM_BYTES)
        row = record._data()
        _copy_stripped(target, row, record._size, tail)
        target += tail + CHECKSUM_BYTES
        target[0] = ROW_CONDITION
        target[1] = CONDITION_BYTES
        target[2] = CONDITION_EXISTENCE
        target[3] = EXISTENCE_IGNORE
        target += 2 + CONDITION_BYTES
    return message


def all_rows_stored(bytes answer not None, Py_ssize_t count):
    """Whether a BatchWriteRowResponse reports all of `count` rows of one table as stored."""
    cdef const byte* data = <const byte*>PyBytes_AS_STRING(answer)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(answer), at = 0, start = 0, row_end
    cdef Py_ssize_t stored = 0
    if end == 0 or data[0] != ANSWER_TABLE or _block(data, 1, end, &at) != end:
        return False
    while at < end:
        if data[at] == ANSWER_TABLE_NAME:
            at = _block(data, at + 1, end, &start)
        elif data[at] == ANSWER_ROW:
            row_end = _block(data, at + 1, end, &start)
            # is_ok is the first field of a row's answer
            if row_end < 0 or row_end - start < 2 or data[start] != ROW_IS_OK or data[start + 1] != 1:
                return False
            stored += 1
            at = row_end
        else:
            return False
        if at < 0:
            return False
    return stored == count


def plan_requests(list records not None, Py_ssize_t max_rows, Py_ssize_t max_bytes, Py_ssize_t max_cells, int max_waves):
    """Cut a page into requests of records that are written unchanged; see `sinks.table.requests`.

    Returns waves of requests: no key occurs twice in a wave, and the records of a key are in consecutive waves. None if
    a record is large, empty or malformed, or if a key occurs in more than `max_waves` records.
    """
    cdef Record record
    cdef Py_ssize_t key_end, size, wave, end = len(records), index
    cdef const byte* data
    cdef dict seen = {}
    # The last request of each wave, which is being filled.
    cdef list waves = [], current = []
    cdef list rows
    cdef Py_ssize_t[MOST_WAVES] bytes_of
    if max_waves > MOST_WAVES:
        max_waves = MOST_WAVES
    for index in range(end):
        record = <Record?>records[index]
        data = record._data()
        key_end = _scan_key(data, record._size)
        size = record._size + ROW_FRAME_BYTES
        if key_end < 0 or size > max_bytes or record._size > max_cells * LEAST_CELL_BYTES:
            return None
        if data[key_end] != ROW_DATA and <int>record.action == ACTION_UPDATE:
            return None
        if record._key is None:
            record._key = PyBytes_FromStringAndSize(<const char*>data + FIRST_CELL_AT, key_end - FIRST_CELL_AT)
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
