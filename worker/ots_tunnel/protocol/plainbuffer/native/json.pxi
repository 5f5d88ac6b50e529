# The JSON form of records (see `record_json`): one pass that verifies, decodes and writes, without an object per cell.

cdef enum:
    # Characters of a line beside twice the bytes of its record, as a usual record has them.
    LINE_CHARACTERS = 256


cdef int _append_value(Text* text, const byte* data, Py_ssize_t size, bint is_key) except -1:
    """A value of variant and payload. A marker, and in a key also a boolean and a double, is left to the reference."""
    cdef long long number
    cdef double real
    if size < 1:
        return UNDECIDED
    if data[0] == STRING and size >= TEXT_AT and _u32(data + 1) == size - TEXT_AT:
        return _append_escaped(text, data + TEXT_AT, size - TEXT_AT)
    if data[0] == INTEGER and size == NUMBER_BYTES:
        memcpy(&number, data + 1, 8)
        return _append_number(text, number)
    if data[0] == BLOB and size >= TEXT_AT and _u32(data + 1) == size - TEXT_AT:
        _append(text, b'{"base64":"', 11)
        _append_base64(text, data + TEXT_AT, size - TEXT_AT)
        return _append(text, b'"}', 2)
    if is_key:
        return UNDECIDED
    if data[0] == DOUBLE and size == NUMBER_BYTES:
        memcpy(&real, data + 1, 8)
        return _append_double(text, real)
    if data[0] == BOOLEAN and size == BOOLEAN_BYTES and data[1] < 2:
        return _append(text, b"true", 4) if data[1] else _append(text, b"false", 5)
    return UNDECIDED


cdef int _append_put(Text* text, const PutStart* start, Repeats* repeats, const Cell* cell, bint is_first) except -1:
    """A put whose start is kept; the comma before it is left out for the first one."""
    _append(text, &start.text[0] + is_first, start.size - is_first)
    if _append_value(text, cell.value, cell.value_size, False):
        return UNDECIDED
    if cell.has_timestamp:
        _append_version(text, repeats, cell.timestamp_ms)
    else:
        _append(text, b"}", 1)
    return WRITTEN if _crc_behind(repeats, cell, start.name_crc) == cell.checksum else UNDECIDED


cdef int _append_cell(Text* text, const Cell* cell, bint is_first) except -1:
    if not _is_sound(cell) or (cell.op == 0 and not cell.has_value):
        return UNDECIDED
    if is_first:
        _append(text, b'{"name":', 8)
    else:
        _append(text, b',{"name":', 9)
    if _append_escaped(text, cell.name, cell.name_size):
        return UNDECIDED
    if cell.op == 0:
        _append(text, b',"op":"PUT"', 11)
    elif cell.op == INCREMENT:
        _append(text, b',"op":"INCREMENT"', 17)
    elif cell.op == DELETE_ONE_VERSION:
        _append(text, b',"op":"DELETE_ONE_VERSION"', 26)
    else:
        _append(text, b',"op":"DELETE_ALL_VERSIONS"', 27)
    if cell.has_value:
        _append(text, b',"value":', 9)
        if _append_value(text, cell.value, cell.value_size, False):
            return UNDECIDED
    if cell.has_timestamp:
        _append(text, b',"version":', 11)
        _append_number(text, cell.timestamp_ms)
    return _append(text, b"}", 1)


cdef struct Layout:
    # A row before it is written: where its parts lie, and its sequence.
    const byte* data
    Py_ssize_t size
    # Behind the key.
    Py_ssize_t key_end
    # Where the cells have to end.
    Py_ssize_t tail
    bint has_sequence
    int epoch
    long long timestamp_us
    int row_index


cdef bint _lay_out(Record record, Layout* row) noexcept:
    """Whether the key is well-formed, which is told from the rest then.

    A sequence is found by its place at the end, and believed once the cells have proven to end before it.
    """
    cdef const byte* tail
    row.data = record._data()
    row.size = record._size
    row.key_end = _scan_key(row.data, row.size)
    if row.key_end < 0:
        return False
    row.has_sequence = row.size - row.key_end >= TAIL_BYTES and _ends_in_sequence(row.data, row.size)
    row.tail = row.size - (TAIL_BYTES if row.has_sequence else CHECKSUM_BYTES)
    if row.has_sequence:
        tail = row.data + row.tail
        memcpy(&row.epoch, tail + EPOCH_AT, 4)
        memcpy(&row.timestamp_us, tail + TIMESTAMP_AT, 8)
        memcpy(&row.row_index, tail + ROW_INDEX_AT, 4)
    return True


cdef int _append_sequence(Text* text, const Layout* row, const char* between) except -1:
    """Epoch, microseconds and row index, with one character between two of them."""
    _append_number(text, row.epoch)
    _append(text, between, 1)
    _append_number(text, row.timestamp_us)
    _append(text, between, 1)
    return _append_number(text, row.row_index)


cdef bint _is_named_before(const byte* data, Py_ssize_t until, const Cell* cell) noexcept nogil:
    """Whether an earlier key cell has the same name, which a JSON object cannot hold twice."""
    cdef Py_ssize_t at = FIRST_CELL_AT
    cdef Cell other
    while at < until:
        at = _scan_cell(data, at, until, &other)
        if other.name_size == cell.name_size and not memcmp(other.name, cell.name, cell.name_size):
            return True
    return False


cdef int _append_key(Text* text, const byte* data, Py_ssize_t end, byte* crc) except -1:
    """The key as an object; `crc` goes on over the checksums of its cells."""
    cdef Py_ssize_t at = FIRST_CELL_AT, start, count = 0
    cdef Cell cell
    _append(text, b"{", 1)
    while at < end:
        # each is compared with all before it
        if count == MOST_KEY_CELLS:
            return UNDECIDED
        count += 1
        start = at
        at = _scan_cell(data, at, end, &cell)
        if not _is_sound(&cell) or _is_named_before(data, start, &cell):
            return UNDECIDED
        crc[0] = TABLES[0][crc[0] ^ cell.checksum]
        if start > FIRST_CELL_AT:
            _append(text, b",", 1)
        if _append_escaped(text, cell.name, cell.name_size):
            return UNDECIDED
        _append(text, b":", 1)
        if _append_value(text, cell.value, cell.value_size, True):
            return UNDECIDED
    return _append(text, b"}", 1)


cdef int _append_head(Text* text, const Layout* row, bytes head) except -1:
    """The members before the key's value."""
    _append(text, PyBytes_AS_STRING(head), PyBytes_GET_SIZE(head))
    if row.has_sequence:
        _append(text, b"[", 1)
        _append_sequence(text, row, b",")
        _append(text, b"]", 1)
    else:
        _append(text, b"null", 4)
    return _append(text, b',"key":', 7)


cdef int _append_columns(Text* text, const Layout* row, Repeats* repeats, byte crc) except -1:
    """What follows the key's value; `crc` is that over the checksums of the key's cells. The row is verified to its end."""
    cdef const byte* data = row.data
    cdef Py_ssize_t at = row.key_end, size = row.size, count = 0
    cdef Cell cell
    cdef PutStart* start
    _append(text, b',"columns":[', 12)
    if data[at] == ROW_DATA:
        at += 1
        while at < size and data[at] == CELL:
            at = _scan_cell(data, at, size, &cell)
            if at < 0:
                return UNDECIDED
            start = &repeats.starts[count & (PLACES - 1)]
            if _has_start(start, &cell):
                if _append_put(text, start, repeats, &cell, count == 0):
                    return UNDECIDED
            elif _append_cell(text, &cell, count == 0):
                return UNDECIDED
            crc = TABLES[0][crc ^ cell.checksum]
            count += 1
        if count == 0:
            return UNDECIDED
    if _row_end(data, at, size, crc) != row.tail:
        return UNDECIDED
    return _append(text, b"]}", 2)


cdef int _append_record(Text* text, Record record, Repeats* repeats, bytes head) except -1:
    """One record; UNDECIDED where only the reference can decide, with a part of it written."""
    cdef Layout row
    cdef byte crc = 0
    if not _lay_out(record, &row):
        return UNDECIDED
    _append_head(text, &row, head)
    if _append_key(text, row.data, row.key_end, &crc):
        return UNDECIDED
    return _append_columns(text, &row, repeats, crc)


cdef Py_ssize_t _room_for_lines(list records, Py_ssize_t first, Py_ssize_t most):
    """Bytes that the lines from `first` on usually take, of which there are `most` and one more line."""
    cdef Py_ssize_t size = FIRST_ROOM
    if first < len(records) and type(records[first]) is Record:
        size = 2 * (<Record>records[first])._size + LINE_CHARACTERS
    return size + min(most, size * (<Py_ssize_t>len(records) - first))


def json_lines(list records not None, Py_ssize_t first, dict heads not None, Py_ssize_t most):
    """Lines of the records from `first` on, and the place of the first record that is not among them.

    It ends at a record that only the reference can decide, or when it has `most` bytes.
    """
    cdef Text text = Text(NULL, 0, 0, NULL)
    cdef Repeats repeats
    cdef Py_ssize_t at = first, count = len(records), size = 0
    _begin_repeats(&repeats)
    try:
        _begin_bytes(&text, _room_for_lines(records, first, most))
        while at < count and text.size < most:
            record = records[at]
            if type(record) is not Record:
                break
            size = text.size
            if _append_record(&text, <Record>record, &repeats, <bytes>heads[(<Record>record).action]):
                text.size = size
                break
            _append(&text, b"\n", 1)
            at += 1
        return _bytes_of(&text), at
    finally:
        _free_text(&text)


def json_record(record, dict heads not None):
    """One record without the end of its line; None where only the reference can decide."""
    cdef Text text = Text(NULL, 0, 0, NULL)
    cdef Repeats repeats
    if type(record) is not Record:
        return None
    _begin_repeats(&repeats)
    try:
        if _append_record(&text, <Record>record, &repeats, <bytes>heads[(<Record>record).action]):
            return None
        return PyBytes_FromStringAndSize(text.data, text.size)
    finally:
        _free_text(&text)
