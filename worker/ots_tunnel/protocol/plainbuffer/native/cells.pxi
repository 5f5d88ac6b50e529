# The grammar of `tags`: cells and rows, found and verified.

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
    EXTENSION = 0x0B
    SEQUENCE = 0x0C
    SEQUENCE_EPOCH = 0x0D
    SEQUENCE_TIMESTAMP = 0x0E
    SEQUENCE_ROW_INDEX = 0x0F
    # Ops of a cell; a put has none.
    DELETE_ALL_VERSIONS = 1
    DELETE_ONE_VERSION = 3
    INCREMENT = 4
    # Sizes, as in `tags`.
    HEADER_BYTES = 4
    TAG_BYTES = 1
    TAG_LENGTH_BYTES = 5
    CELL_START_BYTES = 6
    OP_BYTES = 2
    STAMP_BYTES = 8
    TIMESTAMP_BYTES = TAG_BYTES + STAMP_BYTES
    CHECKSUM_BYTES = 2
    # The first key cell of a buffer: behind the header and the tag of the key section.
    FIRST_CELL_AT = HEADER_BYTES + TAG_BYTES
    # A sequence: epoch and row index of 4 bytes, timestamp of 8, a tag each.
    SEQUENCE_BYTES = 19
    BLOCK_BYTES = TAG_LENGTH_BYTES + SEQUENCE_BYTES
    # An extension with a sequence and nothing else, and the row checksum behind it.
    EXTENSION_BYTES = TAG_LENGTH_BYTES + BLOCK_BYTES
    TAIL_BYTES = EXTENSION_BYTES + CHECKSUM_BYTES
    # Values of a sequence, counted from the begin of the tail.
    EPOCH_AT = TAG_LENGTH_BYTES + TAG_LENGTH_BYTES + TAG_BYTES
    TIMESTAMP_AT = EPOCH_AT + 4 + TAG_BYTES
    ROW_INDEX_AT = TIMESTAMP_AT + 8 + TAG_BYTES

# The first bytes of such an extension, up to the value of the epoch.
cdef byte[11] SEQUENCE_START = [
    EXTENSION, BLOCK_BYTES, 0, 0, 0, SEQUENCE, SEQUENCE_BYTES, 0, 0, 0, SEQUENCE_EPOCH
]


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
    """Offset after the cell at `at`; -1 if it is malformed."""
    cdef Py_ssize_t size
    if end - at < CELL_START_BYTES or data[at] != CELL or data[at + 1] != CELL_NAME:
        return -1
    size = _u32(data + at + 2)
    at += CELL_START_BYTES
    if size > end - at:
        return -1
    cell.name = data + at
    cell.name_size = size
    at += size
    cell.has_value = cell.has_timestamp = False
    cell.op = 0
    if end - at >= TAG_LENGTH_BYTES and data[at] == CELL_VALUE:
        size = _u32(data + at + 1)
        at += TAG_LENGTH_BYTES
        if size > end - at:
            return -1
        cell.has_value = True
        cell.value = data + at
        cell.value_size = size
        at += size
    if end - at >= OP_BYTES and data[at] == CELL_OP:
        cell.op = data[at + 1]
        if cell.op != DELETE_ALL_VERSIONS and cell.op != DELETE_ONE_VERSION and cell.op != INCREMENT:
            return -1
        at += OP_BYTES
    if end - at >= TIMESTAMP_BYTES and data[at] == CELL_TIMESTAMP:
        cell.has_timestamp = True
        memcpy(&cell.timestamp_ms, data + at + TAG_BYTES, STAMP_BYTES)
        at += TIMESTAMP_BYTES
    if end - at < CHECKSUM_BYTES or data[at] != CELL_CHECKSUM:
        return -1
    cell.checksum = data[at + 1]
    return at + CHECKSUM_BYTES


cdef inline bint _is_sound(const Cell* cell) noexcept nogil:
    return _is_sound_behind(cell, _crc(cell.name, cell.name_size, 0))


cdef inline bint _is_sound_behind(const Cell* cell, byte crc) noexcept nogil:
    """Whether the checksum is right, from that of the name."""
    if cell.has_value:
        crc = _crc(cell.value, cell.value_size, crc)
    if cell.has_timestamp:
        crc = _crc(<const byte*>&cell.timestamp_ms, STAMP_BYTES, crc)
    if cell.op:
        crc = _crc(&cell.op, 1, crc)
    return crc == cell.checksum


cdef Py_ssize_t _scan_key(const byte* data, Py_ssize_t end) noexcept nogil:
    """Offset after the key section of the row behind the header; -1 if it is malformed."""
    cdef Cell cell
    cdef Py_ssize_t at = FIRST_CELL_AT
    if end < FIRST_CELL_AT + CHECKSUM_BYTES or data[0] != 0x75 or data[1] or data[2] or data[3] or data[HEADER_BYTES] != ROW_KEY:
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
        and memcmp(data + size - TAIL_BYTES, SEQUENCE_START, sizeof(SEQUENCE_START)) == 0
        and data[size - TAIL_BYTES + TIMESTAMP_AT - TAG_BYTES] == SEQUENCE_TIMESTAMP
        and data[size - TAIL_BYTES + ROW_INDEX_AT - TAG_BYTES] == SEQUENCE_ROW_INDEX
        and data[size - 2] == ROW_CHECKSUM
        and data[size - 4] != CELL_CHECKSUM
        and data[size - 3] != DELETE_MARKER
    )


cdef Py_ssize_t _row_end(const byte* data, Py_ssize_t at, Py_ssize_t size, byte crc) noexcept nogil:
    """Offset of the extension, or of the row checksum if there is no extension, from the offset behind the cells.

    -1 if anything else follows, or if the checksum over the cells' `crc` and the marker differs.
    """
    cdef byte mark = 0
    cdef Py_ssize_t tail
    if at < size and data[at] == DELETE_MARKER:
        mark = 1
        at += 1
    tail = at
    if size - at == TAIL_BYTES and _ends_in_sequence(data, size):
        at += EXTENSION_BYTES
    if size - at != CHECKSUM_BYTES or data[at] != ROW_CHECKSUM or data[at + 1] != TABLES[0][crc ^ mark]:
        return -1
    return tail


cdef Py_ssize_t _check_row(const byte* data, Py_ssize_t size) noexcept nogil:
    """Offset of the extension, or of the row checksum if there is no extension; -1 if any checksum is wrong."""
    cdef Cell cell
    cdef Py_ssize_t key_end = _scan_key(data, size), at = FIRST_CELL_AT
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
