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
    ACTION_DELETE = 3
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


cdef bytes _batch_write(bytes name, list records):
    """The request of some records; None where only the reference can decide."""
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


def encode_batch_writes(str table not None, list requests not None):
    """A BatchWriteRowRequest for each list of records, which writes them unchanged.

    The extensions of the records are left out. None if a record is malformed or has a wrong checksum: the reference
    raises the error.
    """
    cdef bytes name = table.encode(), body
    cdef list bodies = []
    for records in requests:
        body = _batch_write(name, <list?>records)
        if body is None:
            return None
        bodies.append(body)
    return bodies


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


cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030E0000
    #define ots_hash Py_HashBuffer
    #else
    #define ots_hash _Py_HashBytes
    #endif
    """
    # The hash of a bytes object with this content: its seed is random, so nobody can choose keys that collide.
    Py_hash_t ots_hash(const void* data, Py_ssize_t size)


cdef struct Seen:
    # The last record of a key: its number from 1 on, 0 where the place is free; its wave; hash and size of the key.
    Py_hash_t hash
    int record
    int wave
    int key_size


cdef int _next_wave(Seen* places, Py_ssize_t mask, list records, int number, const byte* key, int size) noexcept:
    """The wave of a record, 0 for the first one of its key, which is remembered.

    Keys as objects in a dict took half of the time of a plan.
    """
    cdef Py_hash_t hash = ots_hash(key, size)
    cdef Py_ssize_t at = <Py_ssize_t>hash & mask
    cdef Seen* seen = &places[at]
    while seen.record:
        if seen.hash == hash and seen.key_size == size:
            if not memcmp((<Record>records[seen.record - 1])._data() + FIRST_CELL_AT, key, size):
                seen.wave += 1
                return seen.wave
        at = (at + 1) & mask
        seen = &places[at]
    seen.hash, seen.record, seen.wave, seen.key_size = hash, number, 0, size
    return 0


def plan_requests(list records not None, Py_ssize_t max_rows, Py_ssize_t max_bytes, Py_ssize_t max_cells, int max_waves):
    """Cut a page into requests of records that are written unchanged; see `sinks.table.requests`.

    Returns waves of requests: no key occurs twice in a wave, and the records of a key are in consecutive waves. None if
    a record is large, empty or malformed, or if a key occurs in more than `max_waves` records.
    """
    cdef Record record
    cdef Py_ssize_t key_end, size, end = len(records), index, places = 8
    cdef int wave
    cdef const byte* data
    # The last request of each wave, which is being filled.
    cdef list waves = [], current = []
    cdef list rows
    cdef Py_ssize_t[MOST_WAVES] bytes_of
    while places < 2 * end:
        places *= 2
    cdef bytearray table = bytearray(places * sizeof(Seen))
    cdef Seen* seen = <Seen*><char*>table
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
        wave = _next_wave(seen, places - 1, records, <int>index + 1, data + FIRST_CELL_AT, <int>(key_end - FIRST_CELL_AT))
        if wave >= max_waves:
            return None
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
