# The change log as typed rows (see `sinks.files.typed_rows`): one pass that verifies and decodes, without an object per
# cell. Keys, sequences and cells that are left over are columns of `change_log`, values are columns of `typed`.

cdef enum:
    # Names without a column that the records of one batch can have. They are remembered to tell whether a record touches
    # one twice; a table whose names are data gets smaller batches.
    MOST_OTHER_NAMES = 1024
    # Bytes of a declared column in each row, for the bound of a batch.
    COLUMN_BYTES = 9
    # Places of `TypedLog.filled`; ends are those of each row, name ends those of each name.
    DELETED_ENDS = 0
    DELETED_NAME_ENDS = 1
    DELETED_NAMES = 2
    HAS_ROW_VERSION = 3
    ROW_VERSIONS = 4
    OWN_ENDS = 5
    OWN_NAME_ENDS = 6
    OWN_NAMES = 7
    HAS_OWN_VERSION = 8
    OWN_VERSIONS = 9
    TYPED_FILLED = 10


cdef struct TypedLog:
    # Keys, sequences, and the cells that are left over.
    ChangeLog rest
    # Names and values of attributes without a column.
    ChangeLog others
    Columns columns
    Text[TYPED_FILLED] filled
    bint keeps_unknown
    # The version of the first value of the row.
    bint has_values
    bint has_version
    long long version


cdef inline bint _is_a_double(const byte* data) noexcept nogil:
    """Whether a double is equal to the integer behind the variant."""
    cdef long long number
    cdef double real
    memcpy(&number, data + 1, 8)
    real = <double>number
    # 2^63 is the double next to the largest integers, and no integer
    return real < 9223372036854775808.0 and <long long>real == number


cdef inline bint _suits(const Wanted* column, const byte* value, Py_ssize_t size) noexcept nogil:
    """Whether a value has the type of its column, or is a number that is equal to one of it."""
    if size < 1:
        return False
    if value[0] == column.type:
        return True
    return column.type == DOUBLE and value[0] == INTEGER and size == NUMBER_BYTES and _is_a_double(value)


cdef inline Wanted* _wanted_behind(Columns* columns, Wanted** before, const byte* name, Py_ssize_t size) noexcept nogil:
    """The entry of a name, NULL where there is none; mostly that which followed the one before in the record before."""
    cdef Wanted* found = before[0].following
    if found is NULL or found.name_size != size or memcmp(found.name, name, size):
        found = _wanted(columns, name, size)
        if found is NULL:
            return NULL
        before[0].following = found
    before[0] = found
    return found


cdef inline int _append_name(TypedLog* log, int ends, int names, const Cell* cell) except -1:
    _append(&log.filled[names], cell.name, cell.name_size)
    return _append_end(&log.filled[ends], &log.filled[names])


cdef inline int _fill_version(TypedLog* log, const Cell* cell) except -1:
    """The first value of a row gives its version; one with another version is named."""
    if not log.has_values:
        log.has_values, log.has_version, log.version = True, cell.has_timestamp, cell.timestamp_ms
        return WRITTEN
    if cell.has_timestamp == log.has_version and (not log.has_version or cell.timestamp_ms == log.version):
        return WRITTEN
    _append_name(log, OWN_NAME_ENDS, OWN_NAMES, cell)
    _append_code(&log.filled[HAS_OWN_VERSION], cell.has_timestamp)
    return _append_int64(&log.filled[OWN_VERSIONS], cell.timestamp_ms if cell.has_timestamp else 0)


cdef int _fill_put(TypedLog* log, Wanted* column, const Cell* cell) except -1:
    """A value: that of its column where it is the first one of its row; an older one is left over."""
    cdef Py_ssize_t row = log.columns.rows + 1
    if not cell.has_value:
        return UNDECIDED
    if column.touched == row and column.is_put:
        if cell.has_timestamp and (not column.has_version or cell.timestamp_ms < column.version):
            return _fill_cell(&log.rest, cell)
        return UNDECIDED
    column.touched, column.is_put = row, True
    column.has_version, column.version = cell.has_timestamp, cell.timestamp_ms
    if column - log.columns.wanted < log.columns.count:
        if not _suits(column, cell.value, cell.value_size):
            return UNDECIDED
        if _fill_typed(&log.columns, column, cell.value, cell.value_size):
            return UNDECIDED
    else:
        _append(&log.others.filled[CELL_NAMES], cell.name, cell.name_size)
        _append_end(&log.others.filled[CELL_NAME_ENDS], &log.others.filled[CELL_NAMES])
        if _fill_value(&log.others, cell.value, cell.value_size):
            return UNDECIDED
    return _fill_version(log, cell)


cdef int _fill_change(TypedLog* log, Wanted** before, const Cell* cell) except -1:
    """One cell where the columns can tell it; UNDECIDED where only the reference can divide the cells of its attribute."""
    cdef Wanted* column = _wanted_behind(&log.columns, before, cell.name, cell.name_size)
    cdef Py_ssize_t row = log.columns.rows + 1
    if column is NULL:
        if not log.keeps_unknown or not _is_text(cell.name, cell.name_size):
            return UNDECIDED
        column = _add_name(&log.columns, cell.name, cell.name_size)
        if column is NULL:
            return UNDECIDED
        before[0].following = column
        before[0] = column
    if not _is_sound_behind(cell, column.name_crc):
        return UNDECIDED
    if cell.op == 0:
        return _fill_put(log, column, cell)
    if column.touched == row and (column.is_put or cell.op == DELETE_ALL_VERSIONS):
        return UNDECIDED
    column.touched, column.is_put = row, False
    if cell.op != DELETE_ALL_VERSIONS:
        return _fill_cell(&log.rest, cell)
    if cell.has_value or cell.has_timestamp:
        return UNDECIDED
    return _append_name(log, DELETED_NAME_ENDS, DELETED_NAMES, cell)


cdef int _fill_typed_record(TypedLog* log, Record record) except -1:
    """One record; UNDECIDED where only the reference can decide, with a part of it filled."""
    cdef const byte* data = record._data()
    cdef Py_ssize_t size = record._size, end = _scan_key(data, size), at, tail
    cdef Text* rest = log.rest.filled
    cdef Wanted* before = &log.columns.wanted[log.columns.room]
    cdef byte crc = 0
    cdef Cell cell
    if end < 0 or _fill_key(&log.rest, data, end, &crc):
        return UNDECIDED
    log.has_values, log.has_version = False, False
    at = end
    if data[at] == ROW_DATA:
        at += 1
        if at >= size or data[at] != CELL:
            return UNDECIDED
        while at < size and data[at] == CELL:
            at = _scan_cell(data, at, size, &cell)
            if at < 0 or _fill_change(log, &before, &cell):
                return UNDECIDED
            crc = TABLES[0][crc ^ cell.checksum]
    tail = _row_end(data, at, size, crc)
    if tail < 0:
        return UNDECIDED
    _fill_sequence(rest, data + tail if size - tail == TAIL_BYTES else NULL)
    _append_code(&rest[ACTIONS], <byte><int>record.action)
    _append_int32(&rest[CELL_ENDS], <int>rest[TYPES].size)
    _append_int32(&log.others.filled[CELL_ENDS], <int>log.others.filled[TYPES].size)
    # ends of names are numbers of four bytes, of which the first is 0
    _append_int32(&log.filled[DELETED_ENDS], <int>(log.filled[DELETED_NAME_ENDS].size // 4 - 1))
    _append_int32(&log.filled[OWN_ENDS], <int>log.filled[HAS_OWN_VERSION].size)
    _append_code(&log.filled[HAS_ROW_VERSION], log.has_version)
    _append_int64(&log.filled[ROW_VERSIONS], log.version if log.has_version else 0)
    return _fill_absent(&log.columns)


cdef bint _begin_typed_log(TypedLog* log, tuple key, tuple wanted, bint keeps_unknown) except -1:
    """An empty log; False where only the reference can decide."""
    cdef int index
    log.keeps_unknown = keeps_unknown
    _begin_log(&log.rest, key)
    _begin_log(&log.others, ())
    for index in (DELETED_ENDS, DELETED_NAME_ENDS, OWN_ENDS, OWN_NAME_ENDS):
        _append_int32(&log.filled[index], 0)
    return _begin_columns(&log.columns, wanted, MOST_OTHER_NAMES if keeps_unknown else 0)


cdef void _take_back(Columns* columns) noexcept:
    """Remove the values of a row that is not complete."""
    cdef Py_ssize_t index
    cdef int end = 0
    cdef Wanted* column
    for index in range(columns.count):
        column = &columns.wanted[index]
        if column.type == STRING or column.type == BLOB:
            # a text may be there without its end
            column.values.size = (columns.rows + 1) * 4
            memcpy(&end, column.values.data + columns.rows * 4, 4)
            column.data.size = end
        else:
            column.values.size = columns.rows * (1 if column.type == BOOLEAN else 8)
        column.present.size = columns.rows


def typed_log(list records not None, Py_ssize_t first, tuple key not None, tuple wanted not None, bint keeps_unknown, Py_ssize_t most):
    """Typed rows of the records from `first` on, and the place of the first record that is not among them.

    It ends at a record that only the reference can decide, or when records and declared columns have `most` bytes.
    """
    cdef TypedLog log
    cdef Py_ssize_t[FILLED] of_rest
    cdef Py_ssize_t[FILLED] of_others
    cdef Py_ssize_t[TYPED_FILLED] of_typed
    cdef Py_ssize_t at = first, count = len(records), index, total = 0
    if _reference is None:
        _bind()
    if len(key) > MOST_COLUMN_KEYS:
        return None, first
    for index in range(FILLED):
        log.rest.filled[index] = log.others.filled[index] = Text(NULL, 0, 0, NULL)
    for index in range(TYPED_FILLED):
        log.filled[index] = Text(NULL, 0, 0, NULL)
    log.columns = Columns(NULL, 0, 0, 0, NULL, 0, 0)
    try:
        if not _begin_typed_log(&log, key, wanted, keeps_unknown):
            return None, first
        while at < count and total < most:
            record = records[at]
            if type(record) is not Record:
                break
            for index in range(FILLED):
                of_rest[index], of_others[index] = log.rest.filled[index].size, log.others.filled[index].size
            for index in range(TYPED_FILLED):
                of_typed[index] = log.filled[index].size
            if _fill_typed_record(&log, <Record>record):
                for index in range(FILLED):
                    log.rest.filled[index].size, log.others.filled[index].size = of_rest[index], of_others[index]
                for index in range(TYPED_FILLED):
                    log.filled[index].size = of_typed[index]
                _take_back(&log.columns)
                break
            total += (<Record>record)._size + log.columns.count * COLUMN_BYTES
            at += 1
        return _typed_rows_of(&log) if at > first else None, at
    finally:
        for index in range(FILLED):
            PyMem_Free(log.rest.filled[index].data)
            PyMem_Free(log.others.filled[index].data)
        for index in range(TYPED_FILLED):
            PyMem_Free(log.filled[index].data)
        _free_columns(&log.columns)


cdef tuple _typed_rows_of(TypedLog* log):
    """The columns of the rest and of the others, those of the attributes, and those of deletions and versions."""
    cdef Py_ssize_t index
    columns = tuple([_column_blocks(&log.columns.wanted[index]) for index in range(log.columns.count)])
    own = []
    for index in range(TYPED_FILLED):
        if index == HAS_ROW_VERSION or index == HAS_OWN_VERSION:
            own.append(_bits(&log.filled[index], 1, 1))
        else:
            own.append(_block_of(&log.filled[index]))
    return _columns_of(&log.rest), _columns_of(&log.others), columns, tuple(own)


cdef bint _fits(Columns* columns, const byte* data, Py_ssize_t size, bint keeps_unknown) noexcept nogil:
    """Whether each value of a record has the type of its column; False also where only the reference can decide."""
    cdef Py_ssize_t at = _scan_key(data, size)
    cdef Cell cell
    cdef Wanted* before = &columns.wanted[columns.room]
    cdef Wanted* column
    if at < 0:
        return False
    if data[at] != ROW_DATA:
        return True
    at += 1
    while at < size and data[at] == CELL:
        at = _scan_cell(data, at, size, &cell)
        if at < 0:
            return False
        column = _wanted_behind(columns, &before, cell.name, cell.name_size)
        if column is NULL:
            if not keeps_unknown:
                return False
            column = _add_name(columns, cell.name, cell.name_size)
            if column is not NULL:
                before.following = column
                before = column
        elif column - columns.wanted >= columns.count:
            continue
        elif cell.op == 0 and not (cell.has_value and _suits(column, cell.value, cell.value_size)):
            return False
    return True


def suspects(list records not None, Py_ssize_t first, tuple wanted not None, bint keeps_unknown, Py_ssize_t most):
    """Places of records that typed files may have to refuse, and the place at which to look on.

    No value is decoded and no checksum verified: what is left out here is verified when it is written. It ends when the
    records have `most` bytes.
    """
    cdef Columns columns = Columns(NULL, 0, 0, 0, NULL, 0, 0)
    cdef Py_ssize_t at = first, count = len(records), total = 0
    cdef list found = []
    try:
        if not _begin_columns(&columns, wanted, MOST_OTHER_NAMES if keeps_unknown else 0):
            return list(range(first, count)), count
        while at < count and total < most:
            record = records[at]
            if type(record) is not Record:
                found.append(at)
            else:
                if not _fits(&columns, (<Record>record)._data(), (<Record>record)._size, keeps_unknown):
                    found.append(at)
                total += (<Record>record)._size
            at += 1
        return found, at
    finally:
        _free_columns(&columns)
