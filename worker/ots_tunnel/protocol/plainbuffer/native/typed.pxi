# Rows of a table as columns of given types: one pass that verifies, and decodes what is wanted.

cdef enum:
    # Slots of the table of names for each wanted column, a power of two.
    SLOTS_EACH = 4


cdef struct Wanted:
    const byte* name
    Py_ssize_t name_size
    # A tag of the wire.
    byte type
    # A code for each row: 1 where there is a value.
    Text present
    # Numbers, codes of booleans, or ends of texts.
    Text values
    Text data
    # For typed rows of changes (`typed_log`). The checksum of the name; the name that followed this one last.
    byte name_crc
    Wanted* following
    # The row that touched it last, counted from 1, and what it did there.
    Py_ssize_t touched
    bint is_put
    bint has_version
    long long version


cdef struct Columns:
    Wanted* wanted
    Py_ssize_t count
    # Names in `wanted`: those of the columns, then names that have none, and how many there can be. Behind them is an
    # entry without a name, which is before the first name of a record.
    Py_ssize_t names
    Py_ssize_t room
    # Places in `wanted` by the hash of the name, -1 where there is none.
    int* slots
    Py_ssize_t mask
    # Rows that are complete.
    Py_ssize_t rows


cdef inline Py_ssize_t _slot(const byte* name, Py_ssize_t size) noexcept nogil:
    """The hash FNV-1a of a name."""
    cdef unsigned int hash = 2166136261, prime = 16777619
    cdef Py_ssize_t index
    for index in range(size):
        hash = (hash ^ name[index]) * prime
    return <Py_ssize_t>(hash ^ (hash >> 15))


cdef inline Wanted* _wanted(const Columns* columns, const byte* name, Py_ssize_t size) noexcept nogil:
    """The wanted column of a name; NULL where nobody wants it."""
    cdef Py_ssize_t slot = _slot(name, size) & columns.mask
    cdef Wanted* found
    while columns.slots[slot] >= 0:
        found = &columns.wanted[columns.slots[slot]]
        if found.name_size == size and not memcmp(found.name, name, size):
            return found
        slot = (slot + 1) & columns.mask
    return NULL


cdef int _fill_typed(Columns* columns, Wanted* column, const byte* data, Py_ssize_t size) except -1:
    """A value of variant and payload in a row; UNDECIDED where it is of another type, or the row has one already."""
    cdef long long number
    cdef double real
    if size < 1 or column.present.size > columns.rows:
        return UNDECIDED
    if data[0] != column.type and not (column.type == DOUBLE and data[0] == INTEGER):
        return UNDECIDED
    if data[0] == STRING or data[0] == BLOB:
        if size < TEXT_AT or _u32(data + 1) != size - TEXT_AT:
            return UNDECIDED
        if data[0] == STRING and not _is_text(data + TEXT_AT, size - TEXT_AT):
            return UNDECIDED
        _append(&column.data, data + TEXT_AT, size - TEXT_AT)
        if column.data.size > 0x7FFFFFFF:
            return UNDECIDED
        _append_end(&column.values, &column.data)
    elif data[0] == BOOLEAN:
        if size != BOOLEAN_BYTES or data[1] > 1:
            return UNDECIDED
        _append_code(&column.values, data[1])
    elif size != NUMBER_BYTES:
        return UNDECIDED
    elif data[0] == column.type:
        _append(&column.values, data + 1, 8)
    else:
        memcpy(&number, data + 1, 8)
        real = <double>number
        _append(&column.values, &real, 8)
    _append_code(&column.present, 1)
    return WRITTEN


cdef int _fill_absent(Columns* columns) except -1:
    """Complete a row: NULL in each column that it does not have."""
    cdef Py_ssize_t index
    cdef Wanted* column
    for index in range(columns.count):
        column = &columns.wanted[index]
        if column.present.size > columns.rows:
            continue
        _append_code(&column.present, 0)
        if column.type == STRING or column.type == BLOB:
            _append_end(&column.values, &column.data)
        elif column.type == BOOLEAN:
            _append_code(&column.values, 0)
        else:
            _append_int64(&column.values, 0)
    columns.rows += 1
    return 0


cdef int _fill_wanted(Columns* columns, const Cell* cell) except -1:
    cdef Wanted* column = _wanted(columns, cell.name, cell.name_size)
    return WRITTEN if column is NULL else _fill_typed(columns, column, cell.value, cell.value_size)


cdef Py_ssize_t _fill_row(Columns* columns, const byte* data, Py_ssize_t at, Py_ssize_t end) except -2:
    """Offset after the row at `at`; -1 where only the reference can decide."""
    cdef byte crc = 0, mark = 0
    cdef Cell cell
    if at >= end or data[at] != ROW_KEY:
        return -1
    at += TAG_BYTES
    while at < end and data[at] == CELL:
        at = _scan_cell(data, at, end, &cell)
        if at < 0 or not cell.has_value or cell.op or cell.has_timestamp or not _is_sound(&cell):
            return -1
        if _fill_wanted(columns, &cell):
            return -1
        crc = TABLES[0][crc ^ cell.checksum]
    if at < end and data[at] == ROW_DATA:
        at += TAG_BYTES
        if at >= end or data[at] != CELL:
            return -1
        while at < end and data[at] == CELL:
            at = _scan_cell(data, at, end, &cell)
            # a stored cell has a value and no operation
            if at < 0 or not cell.has_value or cell.op or not _is_sound(&cell) or _fill_wanted(columns, &cell):
                return -1
            crc = TABLES[0][crc ^ cell.checksum]
    if at < end and data[at] == DELETE_MARKER:
        mark = 1
        at += TAG_BYTES
    if end - at < CHECKSUM_BYTES or data[at] != ROW_CHECKSUM or data[at + 1] != TABLES[0][crc ^ mark]:
        return -1
    _fill_absent(columns)
    return at + CHECKSUM_BYTES


cdef inline Wanted* _add_name(Columns* columns, const byte* name, Py_ssize_t size) noexcept nogil:
    """A new name in the table; NULL where there is no room."""
    cdef Py_ssize_t slot = _slot(name, size) & columns.mask
    cdef Wanted* column
    if columns.names == columns.room:
        return NULL
    column = &columns.wanted[columns.names]
    column.name, column.name_size = name, size
    column.name_crc = _crc(name, size, 0)
    while columns.slots[slot] >= 0:
        slot = (slot + 1) & columns.mask
    columns.slots[slot] = <int>columns.names
    columns.names += 1
    return column


cdef bint _begin_columns(Columns* columns, tuple wanted, Py_ssize_t others = 0) except -1:
    """Empty columns of these names and types, and room for other names; False where a name is there twice."""
    cdef Py_ssize_t slots = SLOTS_EACH, index, slot
    cdef Wanted* column
    columns.count = len(wanted)
    columns.room = columns.count + others
    while slots < columns.room * SLOTS_EACH:
        slots *= 2
    columns.mask = slots - 1
    columns.wanted = <Wanted*>PyMem_Calloc(columns.room + 1, sizeof(Wanted))
    columns.slots = <int*>PyMem_Calloc(slots, sizeof(int))
    if columns.wanted is NULL or columns.slots is NULL:
        columns.count = 0
        raise MemoryError
    for slot in range(slots):
        columns.slots[slot] = -1
    for index in range(columns.count):
        name, kind = wanted[index]
        if _wanted(columns, <const byte*>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name)) is not NULL:
            return False
        column = _add_name(columns, <const byte*>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
        column.type = kind
        if column.type == STRING or column.type == BLOB:
            _append_int32(&column.values, 0)
    return True


cdef tuple _column_blocks(Wanted* column):
    """Bits of validity, values, and the data of texts."""
    present = _bits(&column.present, 1, 1)
    values = _bits(&column.values, 1, 1) if column.type == BOOLEAN else _block_of(&column.values)
    return present, values, _block_of(&column.data)


cdef void _free_columns(Columns* columns) noexcept:
    cdef Py_ssize_t index
    for index in range(columns.count):
        PyMem_Free(columns.wanted[index].present.data)
        PyMem_Free(columns.wanted[index].values.data)
        PyMem_Free(columns.wanted[index].data.data)
    PyMem_Free(columns.wanted)
    PyMem_Free(columns.slots)


def typed_columns(bytes rows not None, tuple wanted not None):
    """Number of rows in a buffer with a header, and each wanted column; None where only the reference can decide.

    A cell that nobody wants is verified by its checksum, and not decoded.
    """
    cdef const byte* data = <const byte*>PyBytes_AS_STRING(rows)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(rows), at = HEADER_BYTES, index
    cdef Columns columns = Columns(NULL, 0, 0, 0, NULL, 0, 0)
    if end < HEADER_BYTES or data[0] != 0x75 or data[1] or data[2] or data[3]:
        return None
    try:
        if not _begin_columns(&columns, wanted):
            return None
        while at < end:
            at = _fill_row(&columns, data, at, end)
            if at < 0:
                return None
        return columns.rows, tuple([_column_blocks(&columns.wanted[index]) for index in range(columns.count)])
    finally:
        _free_columns(&columns)
