# The change log as columns (see `sinks.files.arrow_rows`): one pass that verifies and decodes, without an object per cell.

cdef enum:
    # Types of values, and of none, as codes: places in the names of `arrow_rows.VALUE_TYPES`.
    CODE_INTEGER = 0
    CODE_DOUBLE = 1
    CODE_BOOLEAN = 2
    CODE_STRING = 3
    CODE_BINARY = 4
    CODE_NONE = 5
    # Places of `ChangeLog.filled`: one for each record, then one for each cell.
    ACTIONS = 0
    HAS_SEQUENCE = 1
    EPOCHS = 2
    TIMESTAMPS = 3
    ROW_INDEXES = 4
    CELL_ENDS = 5
    CELL_NAME_ENDS = 6
    CELL_NAMES = 7
    OPERATIONS = 8
    TYPES = 9
    HAS_VERSION = 10
    VERSIONS = 11
    INTEGERS = 12
    DOUBLES = 13
    BOOLEANS = 14
    STRING_ENDS = 15
    STRINGS = 16
    BINARY_ENDS = 17
    BINARIES = 18
    # Two for each column of the key: numbers or ends, and bytes.
    KEYS = 19
    MOST_COLUMN_KEYS = 8
    FILLED = KEYS + 2 * MOST_COLUMN_KEYS


cdef struct KeyColumn:
    const byte* name
    Py_ssize_t name_size
    # A tag of the wire.
    byte type


cdef struct ChangeLog:
    Text[FILLED] filled
    Py_ssize_t keys
    KeyColumn[MOST_COLUMN_KEYS] key


cdef inline int _append_end(Text* ends, const Text* texts) except -1:
    return _append_int32(ends, <int>texts.size)


cdef int _fill_key(ChangeLog* log, const byte* data, Py_ssize_t end, byte* crc) except -1:
    """The key of a record; `crc` goes on over the checksums of its cells."""
    cdef Py_ssize_t at = FIRST_CELL_AT, index = 0
    cdef Cell cell
    cdef Text* values
    cdef const KeyColumn* column
    while at < end:
        at = _scan_cell(data, at, end, &cell)
        if index == log.keys or not _is_sound(&cell):
            return UNDECIDED
        crc[0] = TABLES[0][crc[0] ^ cell.checksum]
        column = &log.key[index]
        if cell.name_size != column.name_size or memcmp(cell.name, column.name, cell.name_size):
            return UNDECIDED
        if cell.value_size < 1 or cell.value[0] != column.type:
            return UNDECIDED
        values = &log.filled[KEYS + 2 * index]
        if cell.value[0] == INTEGER:
            if cell.value_size != NUMBER_BYTES:
                return UNDECIDED
            _append(values, cell.value + 1, 8)
        else:
            if cell.value_size < TEXT_AT or _u32(cell.value + 1) != cell.value_size - TEXT_AT:
                return UNDECIDED
            if cell.value[0] == STRING and not _is_text(cell.value + TEXT_AT, cell.value_size - TEXT_AT):
                return UNDECIDED
            _append(values + 1, cell.value + TEXT_AT, cell.value_size - TEXT_AT)
            _append_end(values, values + 1)
        index += 1
    return WRITTEN if index == log.keys else UNDECIDED


cdef int _fill_value(ChangeLog* log, const byte* data, Py_ssize_t size) except -1:
    """A value of variant and payload; every member of the struct has an entry, of which one counts."""
    cdef Text* filled = log.filled
    cdef long long number = 0
    cdef long long real = 0
    cdef byte truth = 0, code
    if size < 1:
        return UNDECIDED
    if data[0] == STRING or data[0] == BLOB:
        if size < TEXT_AT or _u32(data + 1) != size - TEXT_AT:
            return UNDECIDED
        if data[0] == BLOB:
            code = CODE_BINARY
            _append(&filled[BINARIES], data + TEXT_AT, size - TEXT_AT)
        else:
            if not _is_text(data + TEXT_AT, size - TEXT_AT):
                return UNDECIDED
            code = CODE_STRING
            _append(&filled[STRINGS], data + TEXT_AT, size - TEXT_AT)
    elif data[0] == INTEGER and size == NUMBER_BYTES:
        code = CODE_INTEGER
        memcpy(&number, data + 1, 8)
    elif data[0] == DOUBLE and size == NUMBER_BYTES:
        code = CODE_DOUBLE
        memcpy(&real, data + 1, 8)
    elif data[0] == BOOLEAN and size == BOOLEAN_BYTES and data[1] < 2:
        code = CODE_BOOLEAN
        truth = data[1]
    else:
        return UNDECIDED
    return _fill_members(filled, code, number, real, truth)


cdef inline int _fill_members(Text* filled, byte code, long long number, long long real, byte truth) except -1:
    _append_code(&filled[TYPES], code)
    _append_int64(&filled[INTEGERS], number)
    _append_int64(&filled[DOUBLES], real)
    _append_code(&filled[BOOLEANS], truth)
    _append_end(&filled[STRING_ENDS], &filled[STRINGS])
    _append_end(&filled[BINARY_ENDS], &filled[BINARIES])
    return WRITTEN


cdef int _fill_cell(ChangeLog* log, const Cell* cell) except -1:
    cdef Text* filled = log.filled
    if cell.op == 0 and not cell.has_value:
        return UNDECIDED
    if not _is_text(cell.name, cell.name_size):
        return UNDECIDED
    _append(&filled[CELL_NAMES], cell.name, cell.name_size)
    _append_end(&filled[CELL_NAME_ENDS], &filled[CELL_NAMES])
    _append_code(&filled[OPERATIONS], cell.op)
    _append_code(&filled[HAS_VERSION], cell.has_timestamp)
    _append_int64(&filled[VERSIONS], cell.timestamp_ms if cell.has_timestamp else 0)
    if cell.has_value:
        return _fill_value(log, cell.value, cell.value_size)
    return _fill_members(filled, CODE_NONE, 0, 0, 0)


cdef int _fill_sequence(Text* filled, const byte* tail) except -1:
    """The sequence at the end of a row; NULL where there is none."""
    cdef int epoch = 0, index = 0
    cdef long long timestamp_us = 0
    if tail is not NULL:
        memcpy(&epoch, tail + EPOCH_AT, 4)
        memcpy(&timestamp_us, tail + TIMESTAMP_AT, 8)
        memcpy(&index, tail + ROW_INDEX_AT, 4)
    _append_code(&filled[HAS_SEQUENCE], tail is not NULL)
    _append_int64(&filled[EPOCHS], epoch)
    _append_int64(&filled[TIMESTAMPS], timestamp_us)
    return _append_int64(&filled[ROW_INDEXES], index)


cdef int _fill_record(ChangeLog* log, Record record) except -1:
    """One record; UNDECIDED where only the reference can decide, with a part of it filled."""
    cdef const byte* data = record._data()
    cdef Py_ssize_t size = record._size, end = _scan_key(data, size), at, tail
    cdef byte crc = 0
    cdef Cell cell
    if end < 0 or _fill_key(log, data, end, &crc):
        return UNDECIDED
    at = end
    if data[at] == ROW_DATA:
        at += 1
        if at >= size or data[at] != CELL:
            return UNDECIDED
        while at < size and data[at] == CELL:
            at = _scan_cell(data, at, size, &cell)
            if at < 0 or not _is_sound(&cell) or _fill_cell(log, &cell):
                return UNDECIDED
            crc = TABLES[0][crc ^ cell.checksum]
    tail = _row_end(data, at, size, crc)
    if tail < 0:
        return UNDECIDED
    _fill_sequence(log.filled, data + tail if size - tail == TAIL_BYTES else NULL)
    _append_code(&log.filled[ACTIONS], <byte><int>record.action)
    return _append_int32(&log.filled[CELL_ENDS], <int>log.filled[TYPES].size)


cdef int _begin_log(ChangeLog* log, tuple key) except -1:
    """An empty log of records with this key; every column of ends begins with 0."""
    cdef Py_ssize_t index
    for index in range(FILLED):
        log.filled[index] = Text(NULL, 0, 0, NULL)
    log.keys = len(key)
    for index in range(log.keys):
        name, kind = key[index]
        log.key[index] = KeyColumn(<const byte*>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), kind)
        if log.key[index].type != INTEGER:
            _append_int32(&log.filled[KEYS + 2 * index], 0)
    for index in (CELL_ENDS, CELL_NAME_ENDS, STRING_ENDS, BINARY_ENDS):
        _append_int32(&log.filled[index], 0)
    return 0


def change_log(list records not None, Py_ssize_t first, tuple key not None, Py_ssize_t most):
    """Columns of the records from `first` on, and the place of the first record that is not among them.

    It ends at a record that only the reference can decide, or when the records have `most` bytes.
    """
    cdef ChangeLog log
    cdef Py_ssize_t[FILLED] sizes
    cdef Py_ssize_t at = first, count = len(records), index, total = 0
    if _reference is None:
        _bind()
    if len(key) > MOST_COLUMN_KEYS:
        return None, first
    try:
        _begin_log(&log, key)
        while at < count and total < most:
            record = records[at]
            if type(record) is not Record:
                break
            for index in range(FILLED):
                sizes[index] = log.filled[index].size
            if _fill_record(&log, <Record>record):
                for index in range(FILLED):
                    log.filled[index].size = sizes[index]
                break
            total += (<Record>record)._size
            at += 1
        return _columns_of(&log) if at > first else None, at
    finally:
        for index in range(FILLED):
            PyMem_Free(log.filled[index].data)


cdef tuple _columns_of(ChangeLog* log):
    """Bits of validity, buffers of the records and cells, and two buffers for each column of the key.

    Bits are made of codes at the end, because a code is easily taken back.
    """
    cdef Text* filled = log.filled
    cdef Py_ssize_t index
    cdef byte code
    validity = (
        _bits(&filled[HAS_SEQUENCE], 1, 1),
        _bits(&filled[HAS_VERSION], 1, 1),
        _bits(&filled[TYPES], CODE_INTEGER, CODE_BINARY),
        tuple([_bits(&filled[TYPES], code, code) for code in range(CODE_NONE)]),
    )
    columns = []
    for index in range(KEYS):
        if index == BOOLEANS:
            columns.append(_bits(&filled[index], 1, 1))
        elif index != HAS_SEQUENCE and index != HAS_VERSION:
            columns.append(_block_of(&filled[index]))
    keys = tuple(
        [(_block_of(&filled[KEYS + 2 * index]), _block_of(&filled[KEYS + 2 * index + 1])) for index in range(log.keys)]
    )
    return validity, tuple(columns), keys
